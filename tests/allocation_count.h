#pragma once
// Counts every `new` of the program it is linked into, so that a test can say "this allocates
// nothing".

#include <cstdint>

namespace sluice {
std::int64_t allocation_count();
}
