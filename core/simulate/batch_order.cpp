#include "core/simulate/batch_order.h"

#include <algorithm>

#include "core/runtime/kernel_cost.h"
#include "core/train/gradient_work.h"
#include "core/train/layer_traffic.h"

namespace sluice::simulate {
namespace {

using Pass = train::LayerTraffic::Pass;

class StepByBatches {
 public:
  StepByBatches(train::StepContext& context, const session::StepPlan& plan,
                train::StepOutcome& outcome)
      : context_(context), plan_(plan), outcome_(outcome) {}

  runtime::Task<Status> run() {
    offload::Offload& offload = context_.offload;
    outcome_.start_ns = context_.runtime.now_ns();
    const offload::StepDecision decision = session::expected_decision(
        plan_, offload.options().remaining_loss_scale(plan_.position.loss_scale));
    offload.begin_step(
        static_cast<std::int32_t>(plan_.position.step), plan_.position.loss_scale,
        session::update_ahead(plan_, offload.options().overlap,
                              offload.options().remaining_loss_scale(plan_.position.loss_scale)));
    for (int m = 0; m < plan_.micro_step_count; ++m) {
      Status forwarded = co_await forward(m);
      CO_RETURN_IF_ERROR(forwarded);
      Status backwarded = co_await backward(m);
      CO_RETURN_IF_ERROR(backwarded);
    }
    Status sent = co_await offload.gradients().sent();
    CO_RETURN_IF_ERROR(sent);
    outcome_.backward_end_ns = context_.runtime.now_ns();
    Status updated = co_await offload.update(decision);
    CO_RETURN_IF_ERROR(updated);
    outcome_.position = session::position_after(plan_, session::GradientSummary{});
    Status ended = co_await offload.end_step(outcome_.position);
    CO_RETURN_IF_ERROR(ended);
    outcome_.end_ns = context_.runtime.now_ns();
    co_return ok_status();
  }

 private:
  // The first pass brings the tokens of all micro-batches. The last one's end is that of forward.
  runtime::Task<Status> forward(int micro_step) {
    train::LayerTraffic traffic(context_, Pass::forward,
                                micro_step == 0 ? plan_.micro_step_count : 0);
    Status computed = co_await forward_layers(traffic);
    Status finished = co_await traffic.finish();
    if (micro_step == 0) {
      outcome_.parameters_up_ns =
          std::max(outcome_.start_ns, context_.offload.arrival().completed_ns());
    }
    outcome_.forward_end_ns = context_.runtime.now_ns();
    co_return computed.ok() ? finished : computed;
  }

  runtime::Task<Status> forward_layers(train::LayerTraffic& traffic) {
    for (const LayerId layer : all_ids<LayerId>(context_.layout.layer_count())) {
      Status there = co_await traffic.next_layer();
      CO_RETURN_IF_ERROR(there);
      Status done = co_await train::layer_operation(context_, runtime::Stage::forward, layer,
                                                    cost_of(layer).forward_ns);
      CO_RETURN_IF_ERROR(done);
    }
    co_return ok_status();
  }

  runtime::Task<Status> backward(int micro_step) {
    train::LayerTraffic traffic(context_, Pass::backward, plan_.micro_step_count);
    traffic.send_loss(micro_step);
    train::GradientWork work(context_);
    runtime::TaskGroup sums(context_.runtime);
    Status computed = co_await backward_layers(micro_step, traffic, work, sums);
    Status left = co_await work.finish();
    Status finished = co_await traffic.finish();
    Status summed = co_await sums.join();
    if (computed.ok()) computed = finished;
    if (computed.ok()) computed = left;
    co_return computed.ok() ? summed : computed;
  }

  runtime::Task<Status> backward_layers(int micro_step, train::LayerTraffic& traffic,
                                        train::GradientWork& work, runtime::TaskGroup& sums) {
    for (std::int32_t index = context_.layout.layer_count(); index-- > 0;) {
      const LayerId layer{index};
      Status there = co_await traffic.next_layer();
      CO_RETURN_IF_ERROR(there);
      Result<runtime::Pool::Lease> lease = co_await context_.offload.gradients().acquire(layer);
      CO_RETURN_IF_ERROR(lease);
      Status done = co_await train::layer_operation(context_, runtime::Stage::backward, layer,
                                                    cost_of(layer).backward_ns);
      CO_RETURN_IF_ERROR(done);
      if (micro_step + 1 == plan_.micro_step_count) {
        work.send(layer, std::move(*lease));
      } else {
        sums.spawn(take_part(layer, std::move(*lease)));
      }
    }
    co_return ok_status();
  }

  // A micro-batch's gradients of a layer, added to those of the others.
  runtime::Task<Status> take_part(LayerId layer, runtime::Pool::Lease lease) {
    runtime::Waiting waiting;
    waiting.what = "the gradients of the layer above to leave the accelerators";
    waiting.layer = layer;
    Result<runtime::Pool::Lease> turn = co_await context_.gradient_turn.acquire(waiting);
    CO_RETURN_IF_ERROR(turn);
    const train::GradientWork work(context_);
    Status taken = co_await work.take(layer, lease);
    CO_RETURN_IF_ERROR(taken);
    Status added = co_await adding(layer);
    co_return added;
  }

  // One pass, as that which checks a layer's gradients.
  runtime::Operation adding(LayerId layer) {
    const platform::EngineId host = context_.platform.host_engine;
    runtime::Operation operation;
    operation.runtime = &context_.runtime;
    operation.label.stage = runtime::Stage::gradient;
    operation.label.layer = layer;
    operation.cost = runtime::kernel_cost(host, context_.platform.engine(host), "stage",
                                          static_cast<double>(context_.layout.layer(layer).count));
    return operation;
  }

  const plan::LayerCost& cost_of(LayerId layer) const {
    return context_.layer_costs[static_cast<std::size_t>(index_of(layer))];
  }

  train::StepContext& context_;
  const session::StepPlan& plan_;
  train::StepOutcome& outcome_;
};

}  // namespace

std::string why_no_other_order(const plan::RunPlan& plan) {
  if (plan.config.batch.grad_accum_steps < 2) return "there is one micro-batch";
  if (plan.platform.accelerator_routes.empty()) return "parameters cross no link to what computes";
  if (plan.activations.offloads_anything()) return "activations leave by the order of a run";
  if (plan.options.works_on_accelerator()) return "gradients are worked on where they are summed";
  return "";
}

runtime::Task<Status> step_by_batches(train::StepContext& context, const session::StepPlan& plan,
                                      train::StepOutcome& outcome) {
  context.runtime.set_step(static_cast<std::int32_t>(plan.position.step));
  StepByBatches step(context, plan, outcome);
  Status status = co_await step.run();
  if (!status.ok()) {
    Status drained = co_await context.offload.drain();
    static_cast<void>(drained);  // the first failure is the one to tell
  }
  co_return status;
}

}  // namespace sluice::simulate
