#include "profiler/analyze/step_verdicts.h"

#include <algorithm>
#include <string>

namespace sluice::analyze {
namespace {

Cause cause_named(const std::string& name) {
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    if (cause_name(static_cast<Cause>(c)) == name) return static_cast<Cause>(c);
  }
  return Cause::other;
}

}  // namespace

Result<std::vector<rundb::VerdictRow>> compute_verdicts(rundb::Reader& reader, const RunInfo& info,
                                                        std::int64_t first_step,
                                                        std::int64_t spans_max) {
  ASSIGN_OR_RETURN(std::vector<rundb::StepRow> steps, reader.steps());
  ASSIGN_OR_RETURN(steps, steps_with_operations(reader, steps));
  std::erase_if(steps, [&](const rundb::StepRow& step) { return step.id < first_step; });
  std::ranges::reverse(steps);
  std::vector<rundb::VerdictRow> rows;
  StepData data;
  std::int64_t span_count = 0;
  for (const rundb::StepRow& step : steps) {
    if (span_count > spans_max) break;
    RETURN_IF_ERROR(load_step_into(reader, info, step, data));
    if (data.spans.empty()) continue;
    span_count += std::ssize(data.spans);
    const StepVerdict verdict = verdict_of(data);
    for (std::size_t c = 0; c < kCauseCount; ++c) {
      if (verdict.share[c] <= 0) continue;
      rows.push_back({step.id, std::string(cause_name(static_cast<Cause>(c))), verdict.share[c]});
    }
  }
  return rows;
}

Result<std::map<std::int64_t, Shares>> stored_verdicts(rundb::Reader& reader,
                                                       std::int64_t first_step) {
  ASSIGN_OR_RETURN(const std::vector<rundb::VerdictRow> rows, reader.verdicts(first_step));
  std::map<std::int64_t, Shares> verdicts;
  for (const rundb::VerdictRow& row : rows) {
    verdicts[row.step_id][index_of(cause_named(row.cause))] += row.share;
  }
  return verdicts;
}

}  // namespace sluice::analyze
