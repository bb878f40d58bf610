#include "core/train/gradient_work.h"

#include "core/offload/gradient_format.h"
#include "core/offload/offload.h"
#include "core/offload/offload_options.h"
#include "core/offload/step_gradients.h"
#include "core/runtime/kernel_cost.h"
#include "core/train/ranks.h"
#include "core/train/shard_traffic.h"

namespace sluice::train {

using platform::Direction;
using stages::Stage;
using Kind = DeviceWork::Kind;

runtime::Task<Status> GradientWork::sent() {
  const bool goes_beside =
      context_.shards == nullptr || context_.shards->overlaps(shard::Overlap::reduce_backward);
  if (goes_beside) co_return ok_status();
  Status left = co_await leaving_.join();
  co_return left;
}

runtime::Task<Status> GradientWork::leave(LayerId layer, runtime::Pool::Lease lease) {
  runtime::Waiting waiting;
  waiting.what = "the gradients of the layer above to leave the accelerators";
  waiting.layer = layer;
  Result<runtime::Pool::Lease> turn = co_await context_.gradient_turn.acquire(waiting);
  CO_RETURN_IF_ERROR(turn);
  Status taken = co_await take(layer, lease);
  CO_RETURN_IF_ERROR(taken);
  // In the order of the layers, as on the other ranks: the turn is ours.
  if (context_.ranks != nullptr) {
    Status summed = co_await add_up_over_ranks(layer, lease);
    CO_RETURN_IF_ERROR(summed);
  }
  context_.offload.gradients().send(layer, std::move(lease));
  co_return ok_status();
}

runtime::Task<Status> GradientWork::add_up_over_ranks(LayerId layer,
                                                      const runtime::Pool::Lease& lease) {
  const model::LayerGradient gradient = context_.offload.gradients().view(lease, layer);
  const std::span values(gradient.values_fp32, static_cast<std::size_t>(gradient.element_count));
  if (context_.shards != nullptr) {
    Status reduced = co_await context_.shards->reduce(layer, values);
    co_return reduced;
  }
  Status summed = co_await context_.ranks->sum_gradient(context_.runtime, layer, values);
  co_return summed;
}

std::int64_t GradientWork::gradient_bytes(LayerId layer) const {
  return context_.layout.layer(layer).count *
         optimizer::bytes_of(context_.offload.options().gradient_kind);
}

runtime::Task<Status> GradientWork::take(LayerId layer, const runtime::Pool::Lease& lease) const {
  if (moves_.moves_nothing()) co_return ok_status();
  const offload::OffloadOptions& options = context_.offload.options();
  if (!options.works_on_accelerator()) {
    Status taken = co_await take_all(layer, lease, AmongPeers::all);
    co_return taken;
  }
  const auto gradient = static_cast<std::int8_t>(lease.index());
  Status checked = co_await check(layer, gradient);
  CO_RETURN_IF_ERROR(checked);
  if (!options.is_sparse()) {
    Status taken = co_await take_all(layer, lease, AmongPeers::nothing);
    co_return taken;
  }
  // After an overflow the step is skipped, and what overflowed must not enter the residual.
  if (!context_.offload.gradients().stats().finite) co_return ok_status();
  Status taken = co_await take_largest(layer, gradient);
  co_return taken;
}

runtime::Task<Status> GradientWork::take_all(LayerId layer, const runtime::Pool::Lease& lease,
                                             AmongPeers among_peers) const {
  const Move whole{.stage = Stage::gradient_out,
                   .direction = Direction::read,
                   .layer = layer,
                   .size_bytes = gradient_bytes(layer),
                   .among_peers = among_peers,
                   .work = {.kind = Kind::gradient_out,
                            .gradient = static_cast<std::int8_t>(lease.index()),
                            .layer = layer,
                            .host = data_of(context_.offload.gradients().view(lease, layer))}};
  Status taken = co_await moves_.in_parts(whole);
  co_return taken;
}

// Several accelerators have summed the layer before they look at it.
runtime::Task<Status> GradientWork::check(LayerId layer, std::int8_t gradient) const {
  Status summed = co_await moves_.among_peers(layer, gradient_bytes(layer));
  CO_RETURN_IF_ERROR(summed);
  offload::StepGradients& gradients = context_.offload.gradients();
  const offload::BlockSums come = gradients.block_sums(layer);
  Status checked =
      co_await kernel(Stage::gradient, "elementwise", come.element_count,
                      {.kind = Kind::check_gradient, .gradient = gradient, .layer = layer});
  CO_RETURN_IF_ERROR(checked);
  const Move sums{
      .stage = Stage::gradient_out,
      .direction = Direction::read,
      .layer = layer,
      .size_bytes = come.count * 8,
      .work = {
          .kind = Kind::sums_out, .layer = layer, .host = reinterpret_cast<std::byte*>(come.into)}};
  Status taken = co_await moves_.in_parts(sums);
  CO_RETURN_IF_ERROR(taken);
  gradients.note_block_sums(layer);
  co_return ok_status();
}

runtime::Task<Status> GradientWork::take_largest(LayerId layer, std::int8_t gradient) const {
  offload::StepGradients& gradients = context_.offload.gradients();
  std::int32_t number = 0;
  for (const offload::GradientSegment& segment : gradients.format().segments(layer)) {
    DeviceWork work{
        .kind = Kind::select_gradient, .gradient = gradient, .layer = layer, .segment = number++};
    // With feedback the residual is kept without the loss scale.
    work.gradient_scale = 1 / gradients.loss_scale();
    runtime::Operation select = kernel(Stage::compress, "compress", segment.count, work);
    select.label.subgroup = segment.subgroup;
    select.label.size_bytes =
        segment.count * optimizer::bytes_of(context_.offload.options().gradient_kind);
    Status selected = co_await select;
    CO_RETURN_IF_ERROR(selected);
  }
  gradients.note_selected(layer);
  const Move kept = kept_move(Stage::gradient_out, Direction::read, Kind::kept_out, layer);
  Status taken = co_await moves_.in_parts(kept);
  co_return taken;
}

runtime::Task<Status> GradientWork::put_back() const {
  const offload::OffloadOptions& options = context_.offload.options();
  if (!options.works_on_accelerator() || !options.has_feedback()) {
    co_return ok_status();
  }
  for (const LayerId layer : all_ids<LayerId>(context_.layout.layer_count())) {
    if (!context_.offload.gradients().is_selected_from(layer)) continue;
    const Move kept = kept_move(Stage::residual_in, Direction::write, Kind::put_back, layer);
    Status back = co_await moves_.by_one(kept);
    CO_RETURN_IF_ERROR(back);
  }
  co_return ok_status();
}

Move GradientWork::kept_move(Stage stage, Direction direction, Kind kind, LayerId layer) const {
  const offload::StepGradients& gradients = context_.offload.gradients();
  Move kept{.stage = stage,
            .direction = direction,
            .layer = layer,
            .size_bytes = model::kept_bytes(gradients.format().kept_count(layer)),
            .work = {.kind = kind, .layer = layer}};
  kept.work.set_kept(gradients.kept_place(layer));
  return kept;
}

runtime::Operation GradientWork::kernel(Stage stage, const char* rate, std::int64_t elements,
                                        const DeviceWork& work) const {
  const platform::EngineId engine = context_.platform.compute_engine;
  runtime::Operation operation;
  operation.runtime = &context_.runtime;
  operation.label.stage = stage;
  operation.label.layer = work.layer;
  operation.cost = runtime::kernel_cost(engine, context_.platform.engine(engine), rate,
                                        static_cast<double>(elements));
  set_device_work(context_, operation, work);
  return operation;
}

runtime::Task<Status> bring_residual(const StepContext& context, Direction direction,
                                     model::BytePart part, std::byte* residual) {
  const bool goes_in = direction == Direction::write;
  runtime::Operation operation =
      AcceleratorMoves(context).by_one({.stage = goes_in ? Stage::residual_in : Stage::residual_out,
                                        .direction = direction,
                                        .size_bytes = part.size_bytes});
  set_device_work(
      context, operation,
      {.kind = goes_in ? Kind::residual_in : Kind::residual_out, .part = part, .host = residual});
  Status brought = co_await operation;
  co_return brought;
}

}  // namespace sluice::train
