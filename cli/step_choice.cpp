#include "cli/step_choice.h"

#include "profiler/analyze/step_range.h"

namespace sluice::cli {

Result<report::RunPart> chosen_part(rundb::Reader& reader, const StepChoice& choice) {
  if (choice.last > 0) return report::part_of_last_steps(reader, choice.last);
  if (choice.steps.empty()) return report::RunPart{};
  ASSIGN_OR_RETURN(const analyze::StepRange range,
                   analyze::parse_step_range("--steps", choice.steps));
  return report::part_of_steps(reader, range.first + 1, range.last + 1);
}

}  // namespace sluice::cli
