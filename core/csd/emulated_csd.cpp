#include "core/csd/emulated_csd.h"

#include <cstring>

#include "base/check.h"
#include "core/csd/update_kernel.h"

namespace sluice::csd {
namespace {

const platform::Device& device_of(const DeviceRequest& request) {
  return request.platform.device(request.device);
}

// Null without payload.
std::byte* data_of(const DeviceRange& range) {
  const std::span<std::byte> bytes = range.buffer->bytes();
  return bytes.empty() ? nullptr : bytes.data() + range.offset_bytes;
}

std::byte* bytes_of(const DeviceBuffer* buffer) {
  return buffer == nullptr ? nullptr : buffer->bytes().data();
}

UpdateMemory memory_of(const UpdateBuffers& buffers) {
  UpdateMemory memory;
  for (std::size_t v = 0; v < buffers.state.size(); ++v) {
    memory.state[v] = bytes_of(buffers.state[v]);
  }
  memory.gradient = buffers.gradient->bytes();
  if (buffers.parameters != nullptr) {
    memory.parameters = reinterpret_cast<std::uint16_t*>(buffers.parameters->bytes().data());
  }
  return memory;
}

}  // namespace

Result<std::unique_ptr<CsdDevice>> EmulatedFactory::make(const DeviceRequest& request) {
  return std::unique_ptr<CsdDevice>(std::make_unique<EmulatedCsd>(request, payload_));
}

EmulatedCsd::EmulatedCsd(const DeviceRequest& request, Payload payload)
    : CsdDevice(request.runtime, device_of(request), request.device, request.drive),
      engine_(request.platform.engine(device_of(request).engine)),
      payload_(payload),
      memory_(device_of(request).name, request.memory_bytes, payload) {
  CHECK(!device_.internal_route.empty());
}

runtime::Operation EmulatedCsd::read(const TransferLabel& label, const DeviceTransfer& transfer) {
  return transfer_over(device_.internal_route, platform::Direction::read, label,
                       {transfer.offset_bytes, transfer.buffer->bytes(), transfer.size_bytes});
}

runtime::Operation EmulatedCsd::write(const TransferLabel& label, const DeviceTransfer& transfer) {
  return transfer_over(device_.internal_route, platform::Direction::write, label,
                       {transfer.offset_bytes, transfer.buffer->bytes(), transfer.size_bytes});
}

runtime::Operation EmulatedCsd::update(const UpdateOrder& order, const UpdateBuffers& buffers,
                                       UpdatedChecksums& updated) {
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label = {stages::Stage::update, id_, order.task.subgroup};
  operation.label.step = order.step;
  operation.cost = update_cost(order.task, device_.engine, engine_);
  if (payload_ == Payload::real) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.function = [&order, memory = memory_of(buffers), &updated] {
      return run_update(order, memory, updated);
    };
  }
  return operation;
}

runtime::Operation EmulatedCsd::sync_from_device(const TransferLabel& label,
                                                 const DeviceRange& device,
                                                 std::span<std::byte> host,
                                                 std::int64_t size_bytes) {
  return copy(label, platform::Direction::read, data_of(device), host.data(), size_bytes);
}

runtime::Operation EmulatedCsd::sync_to_device(const TransferLabel& label,
                                               std::span<const std::byte> host,
                                               const DeviceRange& device, std::int64_t size_bytes) {
  return copy(label, platform::Direction::write, host.data(), data_of(device), size_bytes);
}

runtime::Operation EmulatedCsd::copy(const TransferLabel& label, platform::Direction direction,
                                     const std::byte* from, std::byte* to,
                                     std::int64_t size_bytes) {
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label = {label.stage, id_, label.subgroup, label.layer, size_bytes};
  operation.label.step = label.step;
  operation.cost.route = device_.memory_route;
  operation.cost.direction = direction;
  if (payload_ == Payload::real) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.function = [from, to, size_bytes] {
      std::memcpy(to, from, static_cast<std::size_t>(size_bytes));
      return ok_status();
    };
  }
  return operation;
}

}  // namespace sluice::csd
