#include "core/tune/replanner.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "base/units.h"
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
// A drive that was busy for less of a window says nothing of its rate.
constexpr double kBusyShare = 0.05;
// No asker's own: those of the control socket count from 1.
constexpr std::int64_t kReplanId = -1;

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

std::string reason(const Replan& plan, double factor) {
  return fmt::format("replan: drives do {:.0f} % of what they did; predicted {} a step, not {}",
                     factor * 100, format_seconds(plan.seconds),
                     format_seconds(plan.seconds_before));
}

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

void Replanner::on_step(const session::StepReport& /*report*/) {
  if (++window_steps_ < kWindowSteps) return;
  const TimeNs now_ns = now_ns_();
  const DriveWatch::Use use = watch_.take(now_ns);
  const auto window_ns = static_cast<double>(now_ns - window_ns_);
  begin_window();
  if (search_.valid() || static_cast<double>(use.busy_ns) < kBusyShare * window_ns) return;
  const std::optional<double> factor = rule_.on_window(use.bytes_per_s());
  if (factor) begin_search(*factor);
}

// Rates under other settings are no drift.
void Replanner::on_knobs_changed(std::int64_t /*step*/, TimeNs /*ts*/,
                                 std::span<const settings::KnobChange> /*changes*/,
                                 const session::AskedChange* /*asked*/) {
  rule_.restart();
  watch_.take(now_ns_());
  begin_window();
}

void Replanner::begin_window() {
  window_steps_ = 0;
  window_ns_ = now_ns_();
}

void Replanner::begin_search(double factor) {
  drive_factor_ *= factor;
  last_factor_ = factor;
  rule_.restart();
  ReplanRequest request = run_now_();
  request.drive_factor = drive_factor_;
  request.stops = [this] { return stops_.load(); };
  search_ =
      std::async(std::launch::async, [request = std::move(request)] { return replan(request); });
}

std::vector<session::AskedChange> Replanner::take_changes() {
  if (!search_.valid() || search_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return {};
  }
  const Result<Replan> found = search_.get();
  if (!found.ok()) {
    log_warning("the drives have changed, and no other plan was found: " + found.error().message());
    return {};
  }
  if (found->settings.empty()) return {};
  return {{kReplanId, found->settings, reason(*found, last_factor_)}};
}

void Replanner::wait() const {
  if (search_.valid()) search_.wait();
}

}  // namespace sluice::tune
