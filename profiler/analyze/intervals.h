#pragma once
// Times at which something went on, as a sorted list without overlaps.
//
// Thread contract: one thread at a time.

#include <utility>
#include <vector>

#include "base/units.h"

namespace sluice::analyze {

using Interval = std::pair<TimeNs, TimeNs>;  // begin, end; begin < end

class Intervals {
 public:
  // Empty and reversed intervals are left out.
  void add(TimeNs begin, TimeNs end);
  // Sorted, and merged where they touch.
  const std::vector<Interval>& merged();

  TimeNs sum_ns();
  static TimeNs both_ns(Intervals& a, Intervals& b);

 private:
  std::vector<Interval> intervals_;
  bool is_merged_ = true;
};

}  // namespace sluice::analyze
