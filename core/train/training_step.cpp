#include "core/train/training_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/train/layer_traffic.h"

namespace sluice::train {
namespace {

const plan::LayerCost& cost_of(const StepContext& context, LayerId layer) {
  return context.layer_costs[static_cast<std::size_t>(index_of(layer))];
}

runtime::Operation layer_operation(StepContext& context, runtime::Stage stage, LayerId layer,
                                   TimeNs dur_ns) {
  runtime::Operation operation;
  operation.runtime = &context.runtime;
  operation.label.stage = stage;
  operation.label.layer = layer;
  operation.cost.engine = context.platform.compute_engine;
  operation.cost.engine_dur_ns = dur_ns;
  if (context.model != nullptr) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.workers = runtime::Workers::compute;
  }
  return operation;
}

runtime::Operation forward(StepContext& context, LayerId layer, int micro_step) {
  runtime::Operation operation =
      layer_operation(context, runtime::Stage::forward, layer, cost_of(context, layer).forward_ns);
  operation.work.function = [model = context.model, layer, micro_step] {
    return model->forward(layer, micro_step);
  };
  return operation;
}

runtime::Operation backward(StepContext& context, LayerId layer, int micro_step, double scale,
                            const model::LayerGradient& into) {
  runtime::Operation operation = layer_operation(context, runtime::Stage::backward, layer,
                                                 cost_of(context, layer).backward_ns);
  operation.work.function = [model = context.model, layer, micro_step, scale, into] {
    if (micro_step == 0 && into.values_fp32 != nullptr) {
      std::memset(into.values_fp32, 0, static_cast<std::size_t>(into.element_count) * 4);
    }
    return model->backward(layer, micro_step, scale, into);
  };
  return operation;
}

// model: every layer upwards as its parameters come up, all micro-batches through one layer before
// the next.
runtime::Task<Status> forward_layers(StepContext& context, LayerTraffic& traffic) {
  for (std::int32_t layer = 0; layer < context.layout.layer_count(); ++layer) {
    Status there = co_await traffic.next_layer();
    CO_RETURN_IF_ERROR(there);
    for (int micro_step = 0; micro_step < context.micro_step_count; ++micro_step) {
      Status status = co_await forward(context, LayerId{layer}, micro_step);
      CO_RETURN_IF_ERROR(status);
    }
  }
  co_return ok_status();
}

// gradient: every layer downwards; a layer's gradients leave while the next is computed.
runtime::Task<Status> backward_layers(StepContext& context, LayerTraffic& traffic,
                                      double gradient_scale) {
  for (std::int32_t layer = context.layout.layer_count(); layer-- > 0;) {
    const LayerId id{layer};
    Status there = co_await traffic.next_layer();
    CO_RETURN_IF_ERROR(there);
    Result<runtime::Pool::Lease> lease = co_await context.offload.acquire_layer_gradient(id);
    CO_RETURN_IF_ERROR(lease);
    const model::LayerGradient into = context.offload.layer_gradient(*lease, id);
    for (int micro_step = 0; micro_step < context.micro_step_count; ++micro_step) {
      Status status = co_await backward(context, id, micro_step, gradient_scale, into);
      CO_RETURN_IF_ERROR(status);
    }
    traffic.send_gradient(id, std::move(*lease));
  }
  co_return ok_status();
}

runtime::Task<Status> run_forward(StepContext& context) {
  LayerTraffic traffic(context, LayerTraffic::Pass::up);
  Status computed = co_await forward_layers(context, traffic);
  Status finished = co_await traffic.finish();
  co_return computed.ok() ? finished : computed;
}

runtime::Task<Status> run_backward(StepContext& context, double gradient_scale) {
  LayerTraffic traffic(context, LayerTraffic::Pass::down);
  Status computed = co_await backward_layers(context, traffic, gradient_scale);
  Status finished = co_await traffic.finish();
  co_return computed.ok() ? finished : computed;
}

GradientSummary summarise(const offload::Offload& offload, double loss_scale) {
  const optimizer::GradientStats stats = offload.gradient_stats();
  return {std::sqrt(stats.sum_of_squares) / loss_scale, stats.finite};
}

runtime::Task<Status> run_stages(StepContext& context, const StepPlan& plan, StepOutcome& outcome) {
  offload::Offload& offload = context.offload;
  outcome.start_ns = context.runtime.now_ns();
  offload.begin_step(plan.step, plan.loss_scale);  // state may be read ahead from here on

  Status forwarded = co_await run_forward(context);
  CO_RETURN_IF_ERROR(forwarded);
  outcome.parameters_up_ns = std::max(outcome.start_ns, offload.arrival().completed_ns());
  outcome.forward_end_ns = context.runtime.now_ns();

  Status backwarded = co_await run_backward(context, plan.gradient_scale);
  CO_RETURN_IF_ERROR(backwarded);
  Status sent = co_await offload.gradients_sent();  // transfer
  CO_RETURN_IF_ERROR(sent);
  outcome.gradients = summarise(offload, plan.loss_scale);
  outcome.backward_end_ns = context.runtime.now_ns();

  Status updated = co_await offload.update(plan.decide(outcome.gradients));
  CO_RETURN_IF_ERROR(updated);

  Status committed = co_await offload.commit(plan.position_after(outcome.gradients));
  CO_RETURN_IF_ERROR(committed);
  outcome.end_ns = context.runtime.now_ns();
  co_return ok_status();
}

}  // namespace

runtime::Task<Status> training_step(StepContext& context, const StepPlan& plan,
                                    StepOutcome& outcome) {
  context.runtime.set_step(plan.step);
  Status status = co_await run_stages(context, plan, outcome);
  if (!status.ok()) {
    Status drained = co_await context.offload.drain();
    static_cast<void>(drained);  // the first failure is the one to tell
  }
  co_return status;
}

}  // namespace sluice::train
