#include "core/replay/recorded_window.h"

#include <algorithm>
#include <span>

#include "base/figure_text.h"
#include "storage/rundb/query.h"

namespace sluice::replay {
namespace {

// Validation or a sample between two steps is a pause: no step has it.
constexpr double kPauseShare = 0.1;
// Steps that take memory and fill buffers, as in profiler/analyze/run_analysis.cpp.
constexpr std::size_t kSettling = 2;

struct Operations {
  std::int64_t count = 0;
  TimeNs begin_ts = 0;
  TimeNs end_ts = 0;
};

Result<Operations> operations_of(rundb::Reader& reader) {
  Operations all;
  RETURN_IF_ERROR(rundb::Query(reader).each_row(
      "SELECT sum(last_id - first_id + 1), min(ts), max(end_ts) FROM span_run "
      "JOIN track ON track.id = track_id WHERE kind NOT IN ('recorder', 'counter')",
      [&all](std::span<const rundb::Cell> row) {
        const auto whole = [&row](std::size_t column) {
          const auto* value = std::get_if<std::int64_t>(&row[column]);
          return value == nullptr ? 0 : *value;
        };
        all = {whole(0), whole(1), whole(2)};
        return ok_status();
      }));
  return all;
}

std::vector<rundb::StepRow> settled(const analyze::RunInfo& info,
                                    const std::vector<rundb::StepRow>& steps) {
  const std::int64_t changed = info.knob_changes.empty() ? 0 : info.knob_changes.back().step_id;
  const auto first = std::ranges::lower_bound(steps, changed, {}, &rundb::StepRow::id);
  const auto from = static_cast<std::size_t>(first - steps.begin());
  const std::size_t skipped = from + kSettling < steps.size() ? from + kSettling
                              : from < steps.size()           ? from
                                                              : 0;
  return {steps.begin() + static_cast<std::ptrdiff_t>(skipped), steps.end()};
}

bool follows(const rundb::StepRow& step, const rundb::StepRow& before) {
  const TimeNs pause_ns = step.ts - (before.ts + before.dur);
  return pause_ns >= 0 && static_cast<double>(pause_ns) <=
                              kPauseShare * static_cast<double>(std::min(step.dur, before.dur));
}

std::vector<rundb::StepRow> longest_stretch(const std::vector<rundb::StepRow>& steps) {
  std::size_t best_end = 0;
  std::size_t best_count = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    count = i > 0 && follows(steps[i], steps[i - 1]) ? count + 1 : 1;
    if (std::min(count, kStepsMax) < best_count) continue;
    best_count = std::min(count, kStepsMax);
    best_end = i + 1;
  }
  const auto end = steps.begin() + static_cast<std::ptrdiff_t>(best_end);
  return {end - static_cast<std::ptrdiff_t>(best_count), end};
}

Status too_many(std::int64_t count) {
  return make_error(ErrorCode::config,
                    "{} operations are in one stretch of this record, and a replay takes {} at the "
                    "most: record fewer of them, or with steps",
                    format_whole(count), format_whole(kOperationsMax));
}

Status load_steps(rundb::Reader& reader, RecordedWindow& window) {
  while (true) {
    const rundb::StepRow& last = window.steps.back();
    rundb::StepRow whole = window.steps.front();
    whole.dur = last.ts + last.dur - whole.ts;
    RETURN_IF_ERROR(analyze::load_step_into(reader, window.info, whole, window.data));
    const auto count = static_cast<std::int64_t>(window.data.spans.size());
    if (count <= kOperationsMax) return ok_status();
    if (window.steps.size() == 1) return too_many(count);
    window.steps.erase(
        window.steps.begin(),
        window.steps.begin() + static_cast<std::ptrdiff_t>((window.steps.size() + 1) / 2));
  }
}

Status check_at_once(const analyze::StepData& data) {
  std::vector<TimeNs> begins;
  std::vector<TimeNs> ends;
  for (const analyze::Span& span : data.spans) {
    if (span.dur <= 0 || span.track->is_beside_schedule()) continue;
    begins.push_back(span.ts);
    ends.push_back(span.end_ts());
  }
  std::ranges::sort(begins);
  std::ranges::sort(ends);
  std::size_t ended = 0;
  for (std::size_t begun = 0; begun < begins.size(); ++begun) {
    while (ends[ended] <= begins[begun]) ended += 1;
    if (begun + 1 - ended <= kAtOnceMax) continue;
    return make_error(ErrorCode::config,
                      "more than {} operations of this record were under way at one time, and a "
                      "replay takes no more",
                      kAtOnceMax);
  }
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<RecordedWindow>> load_window(rundb::Reader& reader) {
  auto window = std::make_unique<RecordedWindow>();
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader.snapshot());
  ASSIGN_OR_RETURN(window->info, analyze::load_run_info(reader));
  ASSIGN_OR_RETURN(const Operations all, operations_of(reader));
  if (all.count <= 0 || all.end_ts <= all.begin_ts) {
    return make_error(ErrorCode::config,
                      "this record has no operations, so there is nothing to replay: record with "
                      "the level transfers or all");
  }
  ASSIGN_OR_RETURN(std::vector<rundb::StepRow> steps, reader.steps());
  std::erase_if(steps, [](const rundb::StepRow& step) { return step.dur <= 0; });
  if (steps.empty()) {
    if (all.count > kOperationsMax) return too_many(all.count).error();
    const rundb::StepRow whole{.id = 0, .ts = all.begin_ts, .dur = all.end_ts - all.begin_ts};
    RETURN_IF_ERROR(analyze::load_step_into(reader, window->info, whole, window->data));
    RETURN_IF_ERROR(check_at_once(window->data));
    return window;
  }
  ASSIGN_OR_RETURN(steps, analyze::steps_with_operations(reader, steps));
  window->steps = longest_stretch(settled(window->info, steps));
  RETURN_IF_ERROR(load_steps(reader, *window));
  RETURN_IF_ERROR(check_at_once(window->data));
  return window;
}

}  // namespace sluice::replay
