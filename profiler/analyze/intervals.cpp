#include "profiler/analyze/intervals.h"

#include <algorithm>

namespace sluice::analyze {

void Intervals::add(TimeNs begin, TimeNs end) {
  if (end <= begin) return;
  intervals_.emplace_back(begin, end);
  is_merged_ = false;
}

const std::vector<Interval>& Intervals::merged() {
  if (is_merged_) return intervals_;
  std::ranges::sort(intervals_);
  std::size_t last = 0;
  for (std::size_t i = 1; i < intervals_.size(); ++i) {
    if (intervals_[i].first <= intervals_[last].second) {
      intervals_[last].second = std::max(intervals_[last].second, intervals_[i].second);
    } else {
      intervals_[++last] = intervals_[i];
    }
  }
  intervals_.resize(intervals_.empty() ? 0 : last + 1);
  is_merged_ = true;
  return intervals_;
}

TimeNs Intervals::sum_ns() {
  TimeNs sum = 0;
  for (const auto& [begin, end] : merged()) sum += end - begin;
  return sum;
}

TimeNs Intervals::both_ns(Intervals& a, Intervals& b) {
  TimeNs sum = 0;
  auto in_b = b.merged().begin();
  for (const auto& [begin, end] : a.merged()) {
    while (in_b != b.merged().end() && in_b->second <= begin) ++in_b;
    for (auto at = in_b; at != b.merged().end() && at->first < end; ++at) {
      sum += std::min(end, at->second) - std::max(begin, at->first);
    }
  }
  return sum;
}

}  // namespace sluice::analyze
