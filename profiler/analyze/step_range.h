#pragma once
// Steps one behind the other, by their ids in table step.
//
// Thread contract: plain data.

#include <cstdint>

namespace sluice::analyze {

struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;  // included
  bool operator==(const StepRange&) const = default;
};

}  // namespace sluice::analyze
