#include "core/tune/replan.h"

#include <algorithm>

#include "core/control/knob.h"
#include "core/platform/platform_change.h"
#include "core/tune/plan_knobs.h"
#include "core/tune/tier_plan.h"

namespace sluice::tune {
namespace {

// A search that a run waits for must be short; `sluice tune --placement` takes twice as many.
constexpr int kSimulationsMax = 300;
// A plan that gains less of a step is not worth the change.
constexpr double kWorthChanging = 0.02;

// A plan's settings that can change in a live run; the others are as they were.
class LiveKnobs {
 public:
  explicit LiveKnobs(const settings::RunConfig& config) : knobs_(settings::knobs(config)) {}

  std::vector<std::string> held() const {
    std::vector<std::string> held;
    for (const PlanKnob& row : plan_knobs()) {
      if (!has(row.key)) held.emplace_back(row.key);
    }
    return held;
  }
  std::vector<std::string> of(const std::vector<std::string>& settings) const {
    std::vector<std::string> live;
    std::ranges::copy_if(settings, std::back_inserter(live), [this](const std::string& setting) {
      return has(setting.substr(0, setting.find('=')));
    });
    return live;
  }

 private:
  bool has(const std::string& key) const {
    return std::ranges::find(knobs_, key, &control::Knob::key) != knobs_.end();
  }
  std::vector<control::Knob> knobs_;
};

}  // namespace

Result<Replan> replan(const ReplanRequest& request) {
  plan::RunPlan run = request.run;
  if (run.config.clock.kind == settings::ClockKind::real) {
    ASSIGN_OR_RETURN(run.platform, plan::with_real_accelerator(run.platform, run.config));
  }
  RETURN_IF_ERROR(platform::scale_all(run.platform, platform::Scaled::media, request.drive_factor));
  PlanRequest planned;
  planned.memory = request.memory;
  const LiveKnobs knobs(run.config);
  planned.held = knobs.held();
  planned.simulations_max = kSimulationsMax;
  planned.stops = request.stops;
  planned.plan_of = [&](const std::vector<std::string>& settings) -> Result<plan::RunPlan> {
    plan::RunPlan with = run;
    ASSIGN_OR_RETURN(const settings::RunConfig config,
                     settings::with_knobs(run.config, knobs.of(settings), "replan"));
    RETURN_IF_ERROR(plan::set_knobs(with, config));
    return with;
  };
  ASSIGN_OR_RETURN(const TierPlan plan, plan_tiers(planned));
  Replan found{.seconds_before = plan.start_seconds, .seconds = plan.step.total_seconds};
  if (plan.was_stopped || found.seconds > found.seconds_before * (1 - kWorthChanging)) return found;
  for (const PlannedSetting& setting : plan.settings) {
    if (setting.is_changed()) found.settings.push_back(setting.key + "=" + setting.value);
  }
  return found;
}

}  // namespace sluice::tune
