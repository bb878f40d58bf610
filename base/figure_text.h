#pragma once
// Whole numbers as people read them, beside the rounded quantities of base/units.h.
//
// Thread contract: free functions, any thread.

#include <cstdint>
#include <string>

namespace sluice {

std::string format_whole(std::int64_t count);  // "3 257 856"
// For a setting that may not be less, so rounded up: "297MiB", below 64 MiB "640KiB".
std::string size_text(std::int64_t bytes);

}  // namespace sluice
