#pragma once
// The causes of a step's time: the path from its end back to its begin through what each operation
// waited for. docs/recording.md says how it goes.
//
// Thread contract: free functions.

#include <array>
#include <vector>

#include "profiler/analyze/cause.h"
#include "profiler/analyze/run_data.h"

namespace sluice::analyze {

// A piece of the path. Pieces follow one another without gaps from the step's begin to its end.
struct PathPiece {
  TimeNs ts = 0;
  TimeNs dur = 0;
  Cause cause = Cause::other;
  std::int64_t span_id = -1;  // -1: nothing was running
};

struct StepVerdict {
  std::int64_t step = 0;
  TimeNs ts = 0;
  TimeNs dur = 0;
  // Shares of the path's pieces; sums to 1; all 0 in a step that took no time.
  std::array<double, kCauseCount> share{};
  std::vector<PathPiece> path;  // in order of time

  double share_of(Cause cause) const { return share[index_of(cause)]; }
};

StepVerdict verdict_of(const StepData& step);

}  // namespace sluice::analyze
