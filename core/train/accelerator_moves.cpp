#include "core/train/accelerator_moves.h"

namespace sluice::train {

using stages::Stage;

namespace {

runtime::Task<Status> done(runtime::Operation operation) {
  Status status = co_await operation;
  co_return status;
}

}  // namespace

model::BytePart AcceleratorMoves::part_of(std::int64_t size_bytes, std::size_t accelerator) const {
  const auto count = static_cast<std::int64_t>(accelerator_count());
  const auto number = static_cast<std::int64_t>(accelerator);
  const std::int64_t begin = size_bytes * number / count;
  return {begin, size_bytes * (number + 1) / count - begin};
}

runtime::Operation AcceleratorMoves::operation_of(Stage stage, platform::Direction direction,
                                                  LayerId layer, std::size_t accelerator,
                                                  std::int64_t size_bytes) const {
  const std::span<const platform::LinkId> route = context_.platform.accelerator_routes[accelerator];
  runtime::Operation operation;
  operation.runtime = &context_.runtime;
  operation.label.stage = stage;
  operation.label.layer = layer;
  operation.label.accelerator = static_cast<std::int32_t>(accelerator);
  operation.label.size_bytes = size_bytes;
  const bool is_between_peers = stages::stage_info(stage).place == stages::StagePlace::peer;
  operation.cost.route = is_between_peers ? route.last(1) : route;
  operation.cost.direction = direction;
  return operation;
}

// Bytes that an accelerator gets from its peers go into it, whichever way the layer goes.
runtime::Operation AcceleratorMoves::from_peers(LayerId layer, std::size_t accelerator,
                                                std::int64_t size_bytes) const {
  return operation_of(Stage::peer_in, platform::Direction::write, layer, accelerator,
                      size_bytes - part_of(size_bytes, accelerator).size_bytes);
}

runtime::Task<Status> AcceleratorMoves::in_parts(Move whole) const {
  runtime::TaskGroup moves(context_.runtime);
  const bool has_peers = accelerator_count() > 1 && whole.among_peers == AmongPeers::all;
  for (std::size_t a = 0; a < accelerator_count(); ++a) {
    const model::BytePart part = part_of(whole.size_bytes, a);
    runtime::Operation operation =
        operation_of(whole.stage, whole.direction, whole.layer, a, part.size_bytes);
    DeviceWork work = whole.work;
    work.part = part;
    set_device_work(context_, operation, work);
    moves.spawn(done(std::move(operation)));
    if (has_peers) moves.spawn(done(from_peers(whole.layer, a, whole.size_bytes)));
  }
  Status moved = co_await moves.join();
  co_return moved;
}

runtime::Operation AcceleratorMoves::by_one(const Move& whole) const {
  runtime::Operation operation =
      operation_of(whole.stage, whole.direction, whole.layer, 0, whole.size_bytes);
  DeviceWork work = whole.work;
  work.part = {0, whole.size_bytes};
  set_device_work(context_, operation, work);
  return operation;
}

runtime::Task<Status> AcceleratorMoves::among_peers(LayerId layer, std::int64_t size_bytes) const {
  if (accelerator_count() < 2) co_return ok_status();
  runtime::TaskGroup moves(context_.runtime);
  for (std::size_t a = 0; a < accelerator_count(); ++a) {
    moves.spawn(done(from_peers(layer, a, size_bytes)));
  }
  Status moved = co_await moves.join();
  co_return moved;
}

}  // namespace sluice::train
