#pragma once
// The critical paths of the steps that the timeline shows: the pieces of which a step's verdict is
// the sum (profiler/analyze/critical_path.h), and which spans they are of.
//
// Thread contract: StepPaths is immutable once published; a StepPathReader is used by one thread.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/status.h"
#include "gui/data/run_facts.h"
#include "gui/data/timeline_request.h"
#include "profiler/analyze/critical_path.h"
#include "storage/rundb/reader.h"

namespace sluice::gui {

struct StepPath {
  std::int64_t step = 0;
  TimeNs ts = 0;
  TimeNs end_ts = 0;
  // In order of time, without gaps; empty: the step's operations are not in the record.
  std::vector<analyze::PathPiece> pieces;
};

// A piece of a span, with the step whose time it explains.
struct SpanOnPath {
  std::int64_t span_id = 0;
  std::int64_t step = 0;
  analyze::Cause cause = analyze::Cause::other;
  TimeNs dur = 0;
};

struct StepPaths {
  std::vector<std::shared_ptr<const StepPath>> steps;  // by time
  std::vector<SpanOnPath> spans;                       // by id
  bool is_complete = false;  // false: those of further steps in view are being worked out
  bool is_too_wide = false;  // more than kPathStepsMax steps were asked for: there are none

  bool is_on_path(std::int64_t span_id) const;
  bool is_on_path(std::int64_t span_id, analyze::Cause cause) const;
  std::vector<SpanOnPath> of_span(std::int64_t span_id) const;
};

// The range that is asked for is up to twice as wide as the visible one
// (gui/views/timeline_state.h). A step of some thousand spans takes some milliseconds.
inline constexpr std::size_t kPathStepsMax = 64;

class StepPathReader {
 public:
  // The paths of the steps within what the timeline asks for. Looks at steps for about
  // `budget_ns`, at one at least; null: nothing is new. The last step of a live run is looked at
  // anew when another one has ended, since operations of it may have been written meanwhile.
  Result<std::shared_ptr<const StepPaths>> advance(rundb::Reader& reader, const RunFacts& facts,
                                                   const std::vector<rundb::StepRow>& steps,
                                                   const TimelineRequest& request,
                                                   TimeNs budget_ns);
  // False: advance() has more to do for the same request.
  bool is_complete() const { return is_complete_; }

 private:
  std::map<std::int64_t, std::shared_ptr<const StepPath>> known_;  // by step
  TimelineRequest request_;
  std::size_t step_count_ = 0;
  std::int64_t last_step_ = -1;
  bool is_complete_ = true;
};

}  // namespace sluice::gui
