#pragma once
// Spans of a track may overlap, and viewers would nest spans that overlap on one line. So each span
// gets the first line of its track that is free.
//
// Thread contract: one thread at a time.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/units.h"

namespace sluice::report::detail {

// The lanes of one track.
class Lanes {
 public:
  // Spans come in order of their begin. A lane is free again at the instant when its span ends.
  std::size_t place(TimeNs ts, TimeNs dur) {
    const auto lane = std::ranges::find_if(ends_, [ts](TimeNs end) { return end <= ts; });
    const auto index = static_cast<std::size_t>(lane - ends_.begin());
    if (lane == ends_.end()) ends_.push_back(0);
    ends_[index] = ts + dur;
    return index;
  }

 private:
  std::vector<TimeNs> ends_;
};

}  // namespace sluice::report::detail
