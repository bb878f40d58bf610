#pragma once
// What `./test --all` goes through whole and `./test` in part (docs/decisions.md, 135).

#include <cstdlib>

namespace sluice {

inline bool is_testing_all() { return std::getenv("SLUICE_TEST_ALL") != nullptr; }

}  // namespace sluice
