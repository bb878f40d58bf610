#include "core/csd/emulated_csd.h"

#include <cmath>
#include <cstring>

#include "base/check.h"

namespace sluice::csd {

EmulatedCsd::EmulatedCsd(runtime::Runtime& runtime, const platform::Platform& platform,
                         const platform::Device& device, DeviceId id, std::int64_t inflight_bytes,
                         Payload payload)
    : CsdDevice(runtime, device, id, inflight_bytes),
      engine_(platform.engines[static_cast<std::size_t>(platform::index_of(device.engine))]),
      payload_(payload) {
  CHECK(!device.internal_route.empty());
}

runtime::Operation EmulatedCsd::read(const Owner& owner, const Transfer& transfer) {
  return transfer_over(device_.internal_route, platform::Direction::read, owner, transfer);
}

runtime::Operation EmulatedCsd::write(const Owner& owner, const Transfer& transfer) {
  return transfer_over(device_.internal_route, platform::Direction::write, owner, transfer);
}

runtime::Operation EmulatedCsd::update(const UpdateCommand& command, UpdatedChecksums& updated) {
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label = {runtime::Stage::update, id_, command.subgroup};
  operation.cost = update_cost(command, device_.engine, engine_);
  if (payload_ == Payload::real) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.function = [&command, &updated] { return run_update(command, updated); };
  }
  return operation;
}

runtime::Operation EmulatedCsd::sync_from_device(const Owner& owner,
                                                 std::span<const std::byte> device,
                                                 std::span<std::byte> host,
                                                 std::int64_t size_bytes) {
  return sync(owner, platform::Direction::read, device, host, size_bytes);
}

runtime::Operation EmulatedCsd::sync_to_device(const Owner& owner, std::span<const std::byte> host,
                                               std::span<std::byte> device,
                                               std::int64_t size_bytes) {
  return sync(owner, platform::Direction::write, host, device, size_bytes);
}

runtime::Operation EmulatedCsd::sync(const Owner& owner, platform::Direction direction,
                                     std::span<const std::byte> from, std::span<std::byte> to,
                                     std::int64_t size_bytes) {
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label = {owner.stage, id_, owner.subgroup, owner.layer, size_bytes};
  operation.label.step = owner.step;
  operation.cost.route = device_.memory_route;
  operation.cost.direction = direction;
  if (payload_ == Payload::real) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.function = [from, to, size_bytes] {
      std::memcpy(to.data(), from.data(), static_cast<std::size_t>(size_bytes));
      return ok_status();
    };
  }
  return operation;
}

}  // namespace sluice::csd
