#pragma once
// Shares of causes in whole per cent, for whoever says them: a sentence and a table beside it say
// the same.
//
// Thread contract: a free function.

#include <algorithm>
#include <array>

#include "profiler/analyze/cause.h"

namespace sluice::analyze {

// The figures add to that of the shares' sum.
inline std::array<int, kCauseCount> whole_percents(const std::array<double, kCauseCount>& shares) {
  std::array<int, kCauseCount> percents{};
  std::ranges::copy(rounded_shares(shares, 100), percents.begin());
  return percents;
}

}  // namespace sluice::analyze
