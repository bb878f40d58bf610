// What a session tells of its steps: to the record, and to whoever watches.

#include "core/plan/run_plan.h"
#include "core/runtime/runtime.h"
#include "core/session/open_run.h"
#include "core/session/program_recording.h"
#include "core/session/run_clock.h"
#include "core/session/run_recording.h"
#include "core/session/session_schedule.h"
#include "core/session/session_step.h"
#include "core/session/step_decision.h"

namespace sluice::session {

Status Session::Schedule::note(const StepNote& figures) {
  return at_once([&](OpenRun&) {
    if (figures.validation_loss) tell_validation(figures);
    return figures.loss || figures.tokens ? take_figures(figures) : ok_status();
  });
}

// The parameters that are copied are those of the last step.
void Session::Schedule::record(const WorkSpan& span) {
  const bool is_of_tensor = span.tensor && *span.tensor < request_.tensors.size();
  const std::int64_t step = step_.load() - (span.work == session::Work::parameters ? 1 : 0);
  recording_->program().record(span, is_of_tensor ? tensors_.layer(*span.tensor) : kNoLayer,
                               static_cast<std::int32_t>(step));
}

void Session::Schedule::count(std::string_view name, double value) {
  recording_->program().count(name, value);
}

// Forward ends where the program says so, or else with the first gradient.
StepReport Session::Schedule::report_of(const StepPlan& plan, const GradientSummary& gradients,
                                        TimeNs sent_ns) const {
  StepReport report;
  report.step = position_.step;
  report.steps = run_->plan().config.schedule.steps;
  report.grad_norm = gradients.norm;
  report.lr = plan.update.lr;
  const TimeNs said_ns = recording_->program().forward_end_ns();
  const bool is_said = said_ns > under_way_->before_end_ns && said_ns <= sent_ns;
  const TimeNs forward_end_ns = is_said ? said_ns : under_way_->begin_ns;
  const TimeNs end_ns = run_->runtime().now_ns();
  report.forward_ns = forward_end_ns - under_way_->before_end_ns;
  report.backward_ns = sent_ns - forward_end_ns;
  report.update_ns = end_ns - sent_ns;
  report.total_ns = end_ns - under_way_->before_end_ns;
  return report;
}

Status Session::Schedule::take_figures(const StepNote& figures) {
  if (!under_way_->before) {
    return make_error(ErrorCode::config,
                      "nobody waits for figures of step {}: its loss was given with the step, or "
                      "the step after it has begun",
                      position_.step);
  }
  StepReport& report = under_way_->before->report;
  report.loss = figures.loss.value_or(report.loss);
  report.tokens = figures.tokens.value_or(report.tokens);
  tell_step();
  return ok_status();
}

void Session::Schedule::tell_step() {
  const std::optional<SessionStep::Untold> step = std::exchange(under_way_->before, std::nullopt);
  if (!step) return;
  run_->clock().record_step(step->report, step->begin_ns);
  for (RunObserver* observer : hooks_.observers) observer->on_step(step->report);
}

void Session::Schedule::tell_validation(const StepNote& figures) {
  ValidationReport report;
  report.step = position_.step;
  report.ts = now_ns();
  report.loss = *figures.validation_loss;
  report.tokens = figures.validation_tokens;
  for (RunObserver* observer : hooks_.observers) observer->on_validation(report);
  // The time of a validation is no step's.
  if (!under_way_->has_begun) under_way_->before_end_ns = report.ts;
}

}  // namespace sluice::session
