#include "core/train/layer_traffic.h"

#include "core/train/device_work.h"

namespace sluice::train {

using platform::Direction;
using runtime::Stage;

LayerTraffic::LayerTraffic(StepContext& context, Pass pass, int micro_step_count)
    : context_(context),
      step_(pass == Pass::forward ? 1 : -1),
      next_(pass == Pass::forward ? 0 : context.layout.layer_count() - 1),
      coming_(context.runtime),
      leaving_(context.runtime) {
  for (int m = 0; pass == Pass::forward && m < micro_step_count; ++m) coming_.spawn(bring_batch(m));
  coming_.spawn(bring(LayerId{next_}));
}

runtime::Task<Status> LayerTraffic::next_layer() {
  Status there = co_await coming_.join();
  CO_RETURN_IF_ERROR(there);
  next_ += step_;
  if (next_ >= 0 && next_ < context_.layout.layer_count()) coming_.spawn(bring(LayerId{next_}));
  co_return ok_status();
}

void LayerTraffic::send_gradient(LayerId layer, runtime::Pool::Lease lease) {
  leaving_.spawn(take_gradient(layer, std::move(lease)));
}

void LayerTraffic::send_loss(int micro_step) { leaving_.spawn(bring_loss(micro_step)); }

runtime::Task<Status> LayerTraffic::finish() {
  Status came = co_await coming_.join();
  Status left = co_await leaving_.join();
  co_return came.ok() ? left : came;
}

runtime::Task<Status> LayerTraffic::bring(LayerId layer) {
  Status up = co_await context_.offload.parameters_up(layer);
  CO_RETURN_IF_ERROR(up);
  if (moves_nothing()) co_return ok_status();
  const Move whole{.stage = Stage::layer_in,
                   .direction = Direction::write,
                   .layer = layer,
                   .size_bytes = context_.layout.layer(layer).count * 2,
                   .work = {.kind = DeviceWork::Kind::layer_in, .layer = layer}};
  Status there = co_await move(whole);
  co_return there;
}

runtime::Task<Status> LayerTraffic::bring_batch(int micro_step) {
  if (moves_nothing()) co_return ok_status();
  const Move whole{.stage = Stage::batch_in,
                   .direction = Direction::write,
                   .size_bytes = model::batch_bytes(context_.micro_batch_tokens),
                   .is_shared = false,
                   .work = {.kind = DeviceWork::Kind::batch_in, .micro_step = micro_step}};
  Status there = co_await move(whole);
  co_return there;
}

// One accelerator sends it: what the others have of it they have sent that one before.
runtime::Task<Status> LayerTraffic::bring_loss(int micro_step) {
  if (moves_nothing()) co_return ok_status();
  const Move whole{.stage = Stage::loss_out,
                   .direction = Direction::read,
                   .layer = LayerId{context_.layout.layer_count() - 1},
                   .size_bytes = model::kLossBytes};
  runtime::Operation operation =
      operation_of(whole, whole.stage, whole.direction, 0, whole.size_bytes);
  set_device_work(context_, operation,
                  {.kind = DeviceWork::Kind::loss_out, .micro_step = micro_step});
  Status there = co_await operation;
  co_return there;
}

runtime::Task<Status> LayerTraffic::take_gradient(LayerId layer, runtime::Pool::Lease lease) {
  runtime::Waiting waiting;
  waiting.what = "the gradients of the layer above to leave the accelerators";
  waiting.layer = layer;
  Result<runtime::Pool::Lease> turn = co_await context_.gradient_turn.acquire(waiting);
  CO_RETURN_IF_ERROR(turn);
  if (!moves_nothing()) {
    const Move whole = gradient_move(layer, lease);
    Status out = co_await move(whole);
    CO_RETURN_IF_ERROR(out);
  }
  context_.offload.send_gradient(layer, std::move(lease));
  co_return ok_status();
}

LayerTraffic::Move LayerTraffic::gradient_move(LayerId layer,
                                               const runtime::Pool::Lease& lease) const {
  Move whole{.stage = Stage::gradient_out, .direction = Direction::read, .layer = layer};
  whole.size_bytes = context_.layout.layer(layer).count *
                     optimizer::bytes_of(context_.offload.options().gradient_kind);
  whole.work = {.kind = DeviceWork::Kind::gradient_out,
                .gradient = static_cast<std::int8_t>(lease.index()),
                .layer = layer,
                .layer_gradient = data_of(context_.offload.layer_gradient(lease, layer))};
  return whole;
}

runtime::Operation LayerTraffic::operation_of(const Move& whole, Stage stage, Direction direction,
                                              std::size_t accelerator,
                                              std::int64_t size_bytes) const {
  const std::span<const platform::LinkId> route = context_.platform.accelerator_routes[accelerator];
  runtime::Operation operation;
  operation.runtime = &context_.runtime;
  operation.label.stage = stage;
  operation.label.layer = whole.layer;
  operation.label.accelerator = static_cast<std::int32_t>(accelerator);
  operation.label.size_bytes = size_bytes;
  const bool is_between_peers = runtime::stage_info(stage).place == runtime::StagePlace::peer;
  operation.cost.route = is_between_peers ? route.last(1) : route;
  operation.cost.direction = direction;
  return operation;
}

runtime::Task<Status> LayerTraffic::move(Move whole) {
  const auto run = [](runtime::Operation operation) -> runtime::Task<Status> {
    Status status = co_await operation;
    co_return status;
  };
  const std::size_t count = context_.platform.accelerator_routes.size();
  const auto part_begin = [&](std::size_t parts) {
    return whole.size_bytes * static_cast<std::int64_t>(parts) / static_cast<std::int64_t>(count);
  };
  runtime::TaskGroup moves(context_.runtime);
  for (std::size_t a = 0; a < count; ++a) {
    const model::BytePart part{part_begin(a), part_begin(a + 1) - part_begin(a)};
    runtime::Operation operation =
        operation_of(whole, whole.stage, whole.direction, a, part.size_bytes);
    DeviceWork work = whole.work;
    work.part = part;
    set_device_work(context_, operation, work);
    moves.spawn(run(std::move(operation)));
    if (count == 1 || !whole.is_shared) continue;
    // What an accelerator gets from its peers goes into it, whichever way the layer goes.
    moves.spawn(run(operation_of(whole, Stage::peer_in, Direction::write, a,
                                 whole.size_bytes - part.size_bytes)));
  }
  Status moved = co_await moves.join();
  co_return moved;
}

}  // namespace sluice::train
