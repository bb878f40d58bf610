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
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label = {owner.stage, id_, owner.subgroup, owner.layer, size_bytes};
  operation.label.step = owner.step;
  operation.cost.route = device_.memory_route;
  operation.cost.direction = platform::Direction::read;
  if (payload_ == Payload::real) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.function = [device, host, size_bytes] {
      std::memcpy(host.data(), device.data(), static_cast<std::size_t>(size_bytes));
      return ok_status();
    };
  }
  return operation;
}

}  // namespace sluice::csd
