#pragma once
// What the threads of a program did one after the other, read from spans: a thread runs what it
// calls, so spans of its tracks lie behind or within one another. Those that do not were under way
// beside it, as asynchronous transfers are.
//
// Thread contract: free functions.

#include <cstdint>
#include <vector>

#include "profiler/analyze/run_data.h"

namespace sluice::replay {

// Times of other clocks are converted and rounded: an end and the begin that follows it may lie so
// far apart, as in profiler/analyze/critical_path.cpp.
inline constexpr TimeNs kSameInstantNs = 1'000;

// A stretch of time in which a thread ran a span and none within it.
struct Piece {
  std::size_t span = 0;  // of StepData::spans
  TimeNs begin_ts = 0;
  TimeNs end_ts = 0;
};

struct ThreadOrder {
  std::int64_t track_id = 0;        // the topmost
  std::vector<Piece> pieces;        // in order of time, without overlap
  std::vector<std::size_t> beside;  // spans under way beside it
};

// One for each track of kind `thread` that stands at the top, with those below it. Spans of no
// length are left out.
std::vector<ThreadOrder> thread_orders(const analyze::StepData& step);

}  // namespace sluice::replay
