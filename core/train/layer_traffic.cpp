#include "core/train/layer_traffic.h"

namespace sluice::train {

using platform::Direction;
using runtime::Stage;

LayerTraffic::LayerTraffic(StepContext& context, Pass pass)
    : context_(context),
      step_(pass == Pass::forward ? 1 : -1),
      next_(pass == Pass::forward ? 0 : context.layout.layer_count() - 1),
      coming_(context.runtime),
      leaving_(context.runtime) {
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

runtime::Task<Status> LayerTraffic::finish() {
  Status came = co_await coming_.join();
  Status left = co_await leaving_.join();
  co_return came.ok() ? left : came;
}

runtime::Task<Status> LayerTraffic::bring(LayerId layer) {
  Status up = co_await context_.offload.parameters_up(layer);
  CO_RETURN_IF_ERROR(up);
  Status there = co_await move(Stage::layer_in, Direction::write, layer,
                               context_.layout.layer(layer).count * 2);
  co_return there;
}

runtime::Task<Status> LayerTraffic::take_gradient(LayerId layer, runtime::Pool::Lease lease) {
  runtime::Waiting waiting;
  waiting.what = "the gradients of the layer above to leave the accelerators";
  waiting.layer = layer;
  Result<runtime::Pool::Lease> turn = co_await context_.gradient_turn.acquire(waiting);
  CO_RETURN_IF_ERROR(turn);
  const std::int64_t element_bytes = optimizer::bytes_of(context_.offload.options().gradient_kind);
  Status out = co_await move(Stage::gradient_out, Direction::read, layer,
                             context_.layout.layer(layer).count * element_bytes);
  CO_RETURN_IF_ERROR(out);
  context_.offload.send_gradient(layer, std::move(lease));
  co_return ok_status();
}

runtime::Operation LayerTraffic::part(Stage stage, Direction direction, LayerId layer,
                                      std::size_t accelerator, std::int64_t part_bytes) const {
  const std::span<const platform::LinkId> route = context_.platform.accelerator_routes[accelerator];
  runtime::Operation operation;
  operation.runtime = &context_.runtime;
  operation.label.stage = stage;
  operation.label.layer = layer;
  operation.label.accelerator = static_cast<std::int32_t>(accelerator);
  operation.label.size_bytes = part_bytes;
  const bool is_between_peers = runtime::stage_info(stage).place == runtime::StagePlace::peer;
  operation.cost.route = is_between_peers ? route.last(1) : route;
  operation.cost.direction = direction;
  return operation;
}

runtime::Task<Status> LayerTraffic::move(Stage stage, Direction direction, LayerId layer,
                                         std::int64_t size_bytes) {
  const auto run = [](runtime::Operation operation) -> runtime::Task<Status> {
    Status status = co_await operation;
    co_return status;
  };
  const std::size_t count = context_.platform.accelerator_routes.size();
  const auto part_end = [&](std::size_t parts) {
    return size_bytes * static_cast<std::int64_t>(parts) / static_cast<std::int64_t>(count);
  };
  runtime::TaskGroup moves(context_.runtime);
  for (std::size_t a = 0; a < count; ++a) {
    const std::int64_t part_bytes = part_end(a + 1) - part_end(a);
    moves.spawn(run(part(stage, direction, layer, a, part_bytes)));
    if (count == 1) continue;
    // What an accelerator gets from its peers goes into it, whichever way the layer goes.
    moves.spawn(run(part(Stage::peer_in, Direction::write, layer, a, size_bytes - part_bytes)));
  }
  Status moved = co_await moves.join();
  co_return moved;
}

}  // namespace sluice::train
