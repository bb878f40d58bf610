#include "core/session/knob_schedule.h"

#include <algorithm>

namespace sluice::session {

KnobSchedule::Wanted KnobSchedule::at(std::int64_t step, const settings::RunConfig& config) {
  Wanted wanted{config, config};
  wanted.now.offload.density =
      settings::density_at(step, config.offload.density, config.offload.density_warmup_steps);
  return wanted;
}

Result<std::optional<KnobSchedule::Wanted>> KnobSchedule::planned(std::int64_t step) const {
  const bool is_due = std::ranges::any_of(
      changes_, [&](const PlannedChange& change) { return change.step == step; });
  const double density =
      settings::density_at(step, settings_.offload.density, settings_.offload.density_warmup_steps);
  if (!is_due && density == density_now_) return std::optional<Wanted>();
  settings::RunConfig wanted = settings_;
  for (const PlannedChange& change : changes_) {
    if (change.step != step) continue;
    ASSIGN_OR_RETURN(
        wanted, settings::with_knobs(wanted, change.settings, fmt::format("--at {}", change.step)));
  }
  return std::optional<Wanted>(at(step, wanted));
}

Result<KnobSchedule::Wanted> KnobSchedule::asked(std::int64_t step,
                                                 const std::vector<std::string>& settings) const {
  ASSIGN_OR_RETURN(const settings::RunConfig wanted,
                   settings::with_knobs(settings_, settings, "set"));
  return at(step, wanted);
}

void KnobSchedule::accept(const Wanted& wanted) {
  settings_ = wanted.after_warmup;
  density_now_ = wanted.now.offload.density;
}

}  // namespace sluice::session
