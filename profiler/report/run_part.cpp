#include "profiler/report/run_part.h"

#include <algorithm>
#include <span>
#include <vector>

namespace sluice::report {
namespace {

RunPart part_of(std::span<const rundb::StepRow> steps) {
  RunPart part{.first_step_id = steps.front().id,
               .last_step_id = steps.back().id,
               .begin = steps.front().ts,
               .end = steps.front().ts};
  for (const rundb::StepRow& step : steps) part.end = std::max(part.end, step.ts + step.dur);
  return part;
}

Error no_step() {
  return make_error(ErrorCode::config, "no step of this run has ended; export all of it instead");
}

}  // namespace

Result<RunPart> part_of_steps(rundb::Reader& reader, std::int64_t first, std::int64_t last) {
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> steps, reader.steps());
  if (steps.empty()) return no_step();
  const auto begin = std::ranges::find(steps, first - 1, &rundb::StepRow::id);
  const auto end = std::ranges::find(steps, last - 1, &rundb::StepRow::id);
  if (begin == steps.end() || end == steps.end() || first > last) {
    return make_error(ErrorCode::config, "steps {} to {} are not all in this run: it has {} to {}",
                      first, last, steps.front().id + 1, steps.back().id + 1);
  }
  return part_of(std::span(begin, end + 1));
}

Result<RunPart> part_of_last_steps(rundb::Reader& reader, std::int64_t count) {
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> steps, reader.steps());
  if (steps.empty() || count < 1) return no_step();
  const std::size_t kept = std::min(steps.size(), static_cast<std::size_t>(count));
  return part_of(std::span(steps).last(kept));
}

}  // namespace sluice::report
