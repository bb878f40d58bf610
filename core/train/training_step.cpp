#include "core/train/training_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/activation/activation_carrier.h"
#include "core/model/model_factory.h"
#include "core/model/trainable_model.h"
#include "core/offload/offload.h"
#include "core/offload/parameter_carrier.h"
#include "core/offload/speculation.h"
#include "core/offload/step_gradients.h"
#include "core/train/device_work.h"
#include "core/train/gradient_work.h"
#include "core/train/layer_traffic.h"
#include "core/train/ranks.h"
#include "core/train/shard_traffic.h"

namespace sluice::train {
namespace {

// A step, read from top to bottom.
class TrainingStep {
 public:
  TrainingStep(StepContext& context, const session::StepPlan& plan, StepOutcome& outcome)
      : context_(context), plan_(plan), outcome_(outcome) {}

  runtime::Task<Status> run();

 private:
  runtime::Task<Status> share_parameters();
  runtime::Task<Status> forward();
  runtime::Task<Status> forward_layers(LayerTraffic& traffic);
  runtime::Task<Status> forward_one(LayerId layer, int micro_step);
  runtime::Task<Status> backward();
  runtime::Task<Status> backward_layers(LayerTraffic& traffic, GradientWork& work);
  runtime::Task<Status> backward_one(LayerId layer, int micro_step,
                                     const model::LayerGradient& into, int gradient);
  offload::UpdateAhead update_ahead() const;
  void note_speculation(const offload::StepDecision& decision);
  session::GradientSummary summary() const;
  runtime::Operation forward_operation(LayerId layer, int micro_step);
  runtime::Operation backward_operation(LayerId layer, int micro_step,
                                        const model::LayerGradient& into, int gradient);
  runtime::Operation computing(stages::Stage stage, LayerId layer, TimeNs dur_ns) const;
  const plan::LayerCost& cost_of(LayerId layer) const {
    return context_.layer_costs[static_cast<std::size_t>(index_of(layer))];
  }

  StepContext& context_;
  const session::StepPlan& plan_;
  StepOutcome& outcome_;
};

runtime::Task<Status> TrainingStep::run() {
  offload::Offload& offload = context_.offload;
  const auto now_ns = [this] { return context_.runtime.now_ns(); };
  outcome_.start_ns = now_ns();
  // State may be read ahead from here on.
  offload.begin_step(static_cast<std::int32_t>(plan_.position.step), plan_.position.loss_scale,
                     update_ahead());

  // model: each layer as its parameters come up.
  Status forwarded = co_await forward();
  CO_RETURN_IF_ERROR(forwarded);
  outcome_.parameters_up_ns = std::max(outcome_.start_ns, context_.parameters().completed_ns());
  outcome_.forward_end_ns = now_ns();

  // gradient -> compress -> transfer: each layer's while the next one is computed.
  Status backwarded = co_await backward();
  CO_RETURN_IF_ERROR(backwarded);
  Status sent = co_await offload.gradients().sent();
  CO_RETURN_IF_ERROR(sent);
  outcome_.backward_end_ns = outcome_.end_ns = now_ns();
  outcome_.gradients = summary();
  if (!outcome_.gradients.finite && !plan_.can_skip()) {
    Status refused = co_await offload.refuse_step();
    co_return refused;
  }

  const offload::StepDecision decision = session::decide(
      plan_, outcome_.gradients, offload.options().remaining_loss_scale(plan_.position.loss_scale));
  outcome_.position = session::position_after(plan_, outcome_.gradients);
  if (!decision.apply) {
    Status back = co_await GradientWork(context_).put_back();
    CO_RETURN_IF_ERROR(back);
  }

  // update -> parameters back: every subgroup on its device, or none.
  Status updated = co_await offload.update(decision);
  CO_RETURN_IF_ERROR(updated);
  if (context_.shards != nullptr && decision.apply) {
    Status shared = co_await share_parameters();
    CO_RETURN_IF_ERROR(shared);
  }
  note_speculation(decision);
  Status ended = co_await offload.end_step(outcome_.position);
  CO_RETURN_IF_ERROR(ended);
  outcome_.end_ns = now_ns();
  co_return ok_status();
}

// To the ranks that have the same part of them, beside the next step's forward.
runtime::Task<Status> TrainingStep::share_parameters() {
  context_.shards->share_updated();
  if (context_.shards->overlaps(shard::Overlap::share_forward)) co_return ok_status();
  Status shared = co_await context_.shards->settle();
  co_return shared;
}

runtime::Task<Status> TrainingStep::forward() {
  LayerTraffic traffic(context_, offload::Pass::forward, plan_.micro_step_count);
  Status computed = co_await forward_layers(traffic);
  Status finished = co_await traffic.finish();
  co_return computed.ok() ? finished : computed;
}

// Every layer upwards, all micro-batches through one layer before the next.
runtime::Task<Status> TrainingStep::forward_layers(LayerTraffic& traffic) {
  for (const LayerId layer : all_ids<LayerId>(context_.layout.layer_count())) {
    Status there = co_await traffic.next_layer();
    CO_RETURN_IF_ERROR(there);
    for (int micro_step = 0; micro_step < plan_.micro_step_count; ++micro_step) {
      Status status = co_await forward_one(layer, micro_step);
      CO_RETURN_IF_ERROR(status);
    }
  }
  co_return ok_status();
}

// The tensors that a layer keeps leave memory beside the next one's forward, where they are to.
runtime::Task<Status> TrainingStep::forward_one(LayerId layer, int micro_step) {
  activation::ActivationCarrier* const carrier = context_.activations;
  if (carrier != nullptr) {
    Status room = co_await carrier->room(layer);
    CO_RETURN_IF_ERROR(room);
  }
  Status status = co_await forward_operation(layer, micro_step);
  CO_RETURN_IF_ERROR(status);
  if (carrier != nullptr) carrier->leave(layer, micro_step);
  co_return ok_status();
}

runtime::Task<Status> TrainingStep::backward() {
  LayerTraffic traffic(context_, offload::Pass::backward, plan_.micro_step_count);
  // Nobody waits for a loss before the step has ended.
  for (int m = 0; m < plan_.micro_step_count; ++m) traffic.send_loss(m);
  GradientWork work(context_);
  Status computed = co_await backward_layers(traffic, work);
  Status left = co_await work.finish();
  Status finished = co_await traffic.finish();
  if (computed.ok()) computed = finished;
  co_return computed.ok() ? left : computed;
}

// Every layer downwards; a layer's gradients leave while the next is computed.
runtime::Task<Status> TrainingStep::backward_layers(LayerTraffic& traffic, GradientWork& work) {
  offload::StepGradients& gradients = context_.offload.gradients();
  for (std::int32_t index = context_.layout.layer_count(); index-- > 0;) {
    const LayerId layer{index};
    Status there = co_await traffic.next_layer();
    CO_RETURN_IF_ERROR(there);
    Result<runtime::Pool::Lease> lease = co_await gradients.acquire(layer);
    CO_RETURN_IF_ERROR(lease);
    const model::LayerGradient into = gradients.view(*lease, layer);
    for (int micro_step = 0; micro_step < plan_.micro_step_count; ++micro_step) {
      Status status = co_await backward_one(layer, micro_step, into, lease->index());
      CO_RETURN_IF_ERROR(status);
    }
    work.send(layer, std::move(*lease));
    Status sent = co_await work.sent();
    CO_RETURN_IF_ERROR(sent);
  }
  co_return ok_status();
}

runtime::Task<Status> TrainingStep::backward_one(LayerId layer, int micro_step,
                                                 const model::LayerGradient& into, int gradient) {
  activation::ActivationCarrier* const carrier = context_.activations;
  if (carrier != nullptr) {
    Status there = co_await carrier->bring_back(layer, micro_step);
    CO_RETURN_IF_ERROR(there);
  }
  Status status = co_await backward_operation(layer, micro_step, into, gradient);
  CO_RETURN_IF_ERROR(status);
  if (carrier != nullptr) carrier->done(layer, micro_step);
  co_return ok_status();
}

offload::UpdateAhead TrainingStep::update_ahead() const {
  const offload::Offload& offload = context_.offload;
  offload::UpdateAhead ahead =
      session::update_ahead(plan_, offload.options().overlap,
                            offload.options().remaining_loss_scale(plan_.position.loss_scale));
  if (!context_.speculation.speculates()) ahead.expected.reset();
  return ahead;
}

void TrainingStep::note_speculation(const offload::StepDecision& decision) {
  offload::Offload& offload = context_.offload;
  const offload::StepDecision expected = session::expected_decision(
      plan_, offload.options().remaining_loss_scale(plan_.position.loss_scale));
  context_.speculation.on_decision(decision == expected);
  outcome_.ahead_count = offload.speculation().ahead_count();
  outcome_.refuted_count = offload.speculation().refuted_count();
  outcome_.clipped_count = offload.gradients().clipped_count();
}

session::GradientSummary TrainingStep::summary() const {
  const optimizer::GradientStats stats = context_.offload.gradients().stats();
  return {std::sqrt(stats.sum_of_squares) / plan_.position.loss_scale, stats.finite};
}

runtime::Operation TrainingStep::forward_operation(LayerId layer, int micro_step) {
  runtime::Operation operation =
      computing(stages::Stage::forward, layer, cost_of(layer).forward_ns);
  if (context_.device != nullptr) {
    set_device_work(context_, operation,
                    {.kind = DeviceWork::Kind::forward, .layer = layer, .micro_step = micro_step});
    return operation;
  }
  operation.work.function = [model = context_.model, layer, micro_step] {
    return model->forward(layer, micro_step);
  };
  return operation;
}

runtime::Operation TrainingStep::backward_operation(LayerId layer, int micro_step,
                                                    const model::LayerGradient& into,
                                                    int gradient) {
  runtime::Operation operation =
      computing(stages::Stage::backward, layer, cost_of(layer).backward_ns);
  if (context_.device != nullptr) {
    set_device_work(context_, operation,
                    {.kind = DeviceWork::Kind::backward,
                     .gradient = static_cast<std::int8_t>(gradient),
                     .layer = layer,
                     .micro_step = micro_step,
                     .gradient_scale = plan_.gradient_scale()});
    return operation;
  }
  operation.work.function = [model = context_.model, layer, micro_step,
                             scale = plan_.gradient_scale(), into] {
    if (micro_step == 0 && into.values_fp32 != nullptr) {
      std::memset(into.values_fp32, 0, static_cast<std::size_t>(into.element_count) * 4);
    }
    return model->backward(layer, micro_step, scale, into);
  };
  return operation;
}

runtime::Operation TrainingStep::computing(stages::Stage stage, LayerId layer,
                                           TimeNs dur_ns) const {
  runtime::Operation operation = layer_operation(context_, stage, layer, dur_ns);
  if (context_.model != nullptr) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.workers = runtime::Workers::compute;
  }
  return operation;
}

runtime::Task<Status> validate_layers(StepContext& context, LayerTraffic& traffic) {
  for (const LayerId layer : all_ids<LayerId>(context.layout.layer_count())) {
    Status there = co_await traffic.next_layer();
    CO_RETURN_IF_ERROR(there);
    runtime::Operation operation;
    operation.runtime = &context.runtime;
    operation.label.stage = stages::Stage::validate;
    operation.label.layer = layer;
    if (context.device != nullptr) {
      set_device_work(context, operation, {.kind = DeviceWork::Kind::forward, .layer = layer});
    } else {
      operation.work.kind = runtime::WorkKind::function;
      operation.work.workers = runtime::Workers::compute;
      operation.work.function = [model = context.model, layer] { return model->forward(layer, 0); };
    }
    Status computed = co_await operation;
    CO_RETURN_IF_ERROR(computed);
  }
  traffic.send_loss(0);
  co_return ok_status();
}

runtime::Task<Status> write_layers(StepContext& context, model::TextWriter& text) {
  for (const LayerId layer : all_ids<LayerId>(context.layout.layer_count())) {
    Status there = co_await context.parameters().bring(layer);
    CO_RETURN_IF_ERROR(there);
    runtime::Operation operation;
    operation.runtime = &context.runtime;
    operation.label.stage = stages::Stage::sample;
    operation.label.layer = layer;
    operation.work.kind = runtime::WorkKind::function;
    operation.work.workers = runtime::Workers::compute;
    operation.work.function = [&text, layer] { return text.forward(layer); };
    Status computed = co_await operation;
    CO_RETURN_IF_ERROR(computed);
    context.parameters().done(layer);
  }
  co_return ok_status();
}

}  // namespace

runtime::Operation layer_operation(const StepContext& context, stages::Stage stage, LayerId layer,
                                   TimeNs dur_ns) {
  runtime::Operation operation;
  operation.runtime = &context.runtime;
  operation.label.stage = stage;
  operation.label.layer = layer;
  operation.cost.engine = context.platform.compute_engine;
  operation.cost.engine_dur_ns = dur_ns;
  return operation;
}

runtime::Task<Status> text_pass(StepContext& context, model::TextWriter& text) {
  context.parameters().begin_pass(offload::Pass::forward);
  Status written = co_await write_layers(context, text);
  Status finished = co_await context.parameters().finish_pass();
  co_return written.ok() ? finished : written;
}

runtime::Task<Status> validation_pass(StepContext& context) {
  LayerTraffic traffic(context, offload::Pass::forward, 1);
  Status computed = co_await validate_layers(context, traffic);
  Status finished = co_await traffic.finish();
  co_return computed.ok() ? finished : computed;
}

runtime::Task<Status> training_step(StepContext& context, const session::StepPlan& plan,
                                    StepOutcome& outcome) {
  context.runtime.set_step(static_cast<std::int32_t>(plan.position.step));
  if (context.activations != nullptr) context.activations->begin_step();
  TrainingStep step(context, plan, outcome);
  Status status = co_await step.run();
  if (context.activations != nullptr) {
    Status moved = co_await context.activations->finish();
    if (status.ok()) status = moved;
  }
  if (!status.ok()) {
    Status drained = co_await context.offload.drain();
    static_cast<void>(drained);  // the first failure is the one to tell
    if (context.shards != nullptr) {
      Status settled = co_await context.shards->settle();
      static_cast<void>(settled);
    }
  }
  co_return status;
}

}  // namespace sluice::train
