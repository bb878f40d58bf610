#include "core/session/simulated_update.h"

#include <algorithm>

#include "core/csd/device_factory.h"
#include "core/offload/assembly.h"
#include "core/offload/assembly_plan.h"
#include "core/offload/offload.h"
#include "core/offload/parameter_carrier.h"
#include "core/offload/step_gradients.h"
#include "core/plan/run_plan.h"
#include "core/runtime/clocks.h"
#include "core/runtime/runtime.h"
#include "core/session/step_decision.h"

namespace sluice::session {
namespace {

// The mean is of so many steps; a round of commits that is longer counts in part.
constexpr std::int64_t kStepsMin = 3;
constexpr std::int64_t kStepsMax = 32;

class SimulatedUpdate {
 public:
  explicit SimulatedUpdate(const plan::RunPlan& plan)
      : plan_(plan),
        layout_(plan.geometry, plan.device_map),
        runtime_(std::make_unique<runtime::SimulatedClock>(plan.platform, runtime::Disturbance{})),
        factory_(csd::Payload::none) {
    step_.update = plan.config.update;
  }

  Result<double> mean_seconds() {
    ASSIGN_OR_RETURN(
        assembly_, offload::Assembly::take(plan::assembly_plan(plan_, csd::Payload::none), runtime_,
                                           factory_, {}));
    assembly_->attach(layout_);
    const std::int64_t steps = std::clamp(plan_.options.commit_every, kStepsMin, kStepsMax);
    // The first one finds empty what the others find filled.
    RETURN_IF_ERROR(runtime_.run(take_step()));
    const TimeNs begin_ns = runtime_.now_ns();
    for (std::int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(runtime_.run(take_step()));
    const TimeNs end_ns = runtime_.now_ns();
    RETURN_IF_ERROR(runtime_.run(offload().settle()));
    return static_cast<double>(end_ns - begin_ns) * 1e-9 / static_cast<double>(steps);
  }

 private:
  offload::Offload& offload() { return assembly_->offload(); }

  // As Session::Schedule takes one; gradients come as backward makes them, the last layer's first.
  runtime::Task<Status> take_step() {
    offload().begin_step(static_cast<std::int32_t>(step_.position.step), 1,
                         update_ahead(step_, plan_.options.overlap, 1));
    offload::StepGradients& gradients = offload().gradients();
    for (std::int32_t index = plan_.layout.layer_count(); index-- > 0;) {
      Result<runtime::Pool::Lease> lease = co_await gradients.acquire(LayerId{index});
      CO_RETURN_IF_ERROR(lease);
      gradients.send(LayerId{index}, std::move(*lease));
    }
    Status sent = co_await gradients.sent();
    CO_RETURN_IF_ERROR(sent);
    const GradientSummary summary;
    Status updated = co_await offload().update(decide(step_, summary, 1));
    CO_RETURN_IF_ERROR(updated);
    step_.position = position_after(step_, summary);
    Status ended = co_await offload().end_step(step_.position);
    CO_RETURN_IF_ERROR(ended);
    Status up = co_await offload().parameters().updated();
    co_return up;
  }

  const plan::RunPlan& plan_;
  state::Layout layout_;
  runtime::Runtime runtime_;
  csd::EmulatedFactory factory_;
  std::unique_ptr<offload::Assembly> assembly_;
  StepPlan step_;
};

}  // namespace

Result<double> simulated_update_seconds(const plan::RunPlan& plan) {
  return SimulatedUpdate(plan).mean_seconds();
}

}  // namespace sluice::session
