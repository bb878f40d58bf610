#pragma once
// Which part of a run is exported: all of it, or some whole steps.
//
// One rule for all forms: of a part go out the steps themselves, every operation that was under way
// in them, whole, and every sample and flow within. Operations of the steps beside may reach in.
//
// Thread contract: plain data; the functions use their reader.

#include <cstdint>
#include <limits>

#include "base/status.h"
#include "base/units.h"
#include "storage/rundb/reader.h"

namespace sluice::report {

struct RunPart {
  // As table step has them, from 0. Both included.
  std::int64_t first_step_id = 0;
  std::int64_t last_step_id = std::numeric_limits<std::int64_t>::max();
  // From the begin of the first step to before the end of the last.
  TimeNs begin = std::numeric_limits<TimeNs>::min();
  TimeNs end = std::numeric_limits<TimeNs>::max();

  // As made, it is all of the run, with what was before its steps and after them.
  bool is_whole() const { return begin == std::numeric_limits<TimeNs>::min(); }
  bool has_step(std::int64_t step_id) const {
    return step_id >= first_step_id && step_id <= last_step_id;
  }
  bool has_instant(TimeNs ts) const { return is_whole() || (ts >= begin && ts < end); }
  // That was under way at some time in it; one without length counts where it begins.
  bool has_span(TimeNs ts, TimeNs dur) const {
    return is_whole() || (ts < end && (ts >= begin || ts + dur > begin));
  }
  // Spans that begin and end from `first_ts` to `last_ts`, both included.
  bool may_have_spans_of(TimeNs first_ts, TimeNs last_ts) const {
    return is_whole() || (first_ts < end && last_ts >= begin);
  }
  // The first step that has the new value is in it; before all steps: the instant is.
  bool has_change(const rundb::KnobChangeRow& change) const {
    return change.step_id < 0 ? has_instant(change.ts) : has_step(change.step_id);
  }
};

// Steps as people count them, from 1; both included. ErrorCode::config: the run does not have them
// all; the message says which it has.
Result<RunPart> part_of_steps(rundb::Reader& reader, std::int64_t first, std::int64_t last);
// The last `count` steps, or all if there are fewer. ErrorCode::config: no step has ended.
Result<RunPart> part_of_last_steps(rundb::Reader& reader, std::int64_t count);

}  // namespace sluice::report
