#pragma once
// Steps one behind the other, by their ids in table step.
//
// Thread contract: plain data and a free function.

#include <cstdint>
#include <string>

#include "base/status.h"

namespace sluice::analyze {

struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;  // included
  bool operator==(const StepRange&) const = default;
};

// "step 20", "steps 20 to 24", as people count.
std::string name_of(const StepRange& steps);
// "20" or "20..24", counted from 1 as people do. ErrorCode::config, with the option's name: it is
// no such range.
Result<StepRange> parse_step_range(const std::string& option, const std::string& text);

}  // namespace sluice::analyze
