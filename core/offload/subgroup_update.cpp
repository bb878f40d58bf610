// What is done with one subgroup: read its state and its gradient, update, write the next version,
// bring the parameters up. The pipelines put these in order.

#include "base/check.h"
#include "core/offload/device_line.h"
#include "core/offload/offload.h"

namespace sluice::offload {
namespace {

constexpr std::size_t kMaxVariables = optimizer::kMaxStateArrays;

float* floats(std::span<std::byte> bytes) { return reinterpret_cast<float*>(bytes.data()); }

}  // namespace

csd::DrivePlace Offload::state_place(state::SlotId slot, std::int32_t variable,
                                     std::int64_t element_count) const {
  const state::Extent extent = parts_.state_layout->extent(slot, variable, element_count);
  if (!has_payload()) return {nullptr, extent.offset_bytes};
  return {&parts_.store->file(slot.device), parts_.store->file_offset(extent)};
}

runtime::Operation Offload::read_operation(DeviceId device, const csd::Owner& owner,
                                           const csd::Transfer& transfer) {
  const auto index = static_cast<std::size_t>(index_of(device));
  if (options_.method == Method::csd) return parts_.devices->csds[index]->read(owner, transfer);
  return parts_.devices->drives[index]->host_read(owner, transfer);
}

runtime::Operation Offload::write_operation(DeviceId device, const csd::Owner& owner,
                                            const csd::Transfer& transfer) {
  const auto index = static_cast<std::size_t>(index_of(device));
  if (options_.method == Method::csd) return parts_.devices->csds[index]->write(owner, transfer);
  return parts_.devices->drives[index]->host_write(owner, transfer);
}

state::SlotId Offload::source_slot(SubgroupId subgroup, const StepUpdate& update) const {
  const bool is_uncommitted = !update.committed.is_set() && decision_.apply;
  return is_uncommitted ? next_slot_[static_cast<std::size_t>(index_of(subgroup))]
                        : parts_.state_layout->current(subgroup);
}

runtime::Operation Offload::state_read(SubgroupId subgroup, std::int32_t variable,
                                       const BufferSet& set, const StepUpdate& update) {
  const state::SlotId slot = source_slot(subgroup, update);
  const std::int64_t count = geometry().element_count(subgroup);
  return read_operation(slot.device, {runtime::Stage::state_read, subgroup, kNoLayer, update.step},
                        {state_place(slot, variable, count),
                         set.state[static_cast<std::size_t>(variable)], count * 4});
}

runtime::Operation Offload::state_write(SubgroupId subgroup, std::int32_t variable,
                                        const BufferSet& set) {
  const state::SlotId slot = next_slot_[static_cast<std::size_t>(index_of(subgroup))];
  const std::int64_t count = geometry().element_count(subgroup);
  return write_operation(slot.device, update_owner(runtime::Stage::state_write, subgroup),
                         {state_place(slot, variable, count),
                          set.state[static_cast<std::size_t>(variable)], count * 4});
}

runtime::Task<Status> Offload::read_state(SubgroupId subgroup, const BufferSet& set,
                                          const StepUpdate& update) {
  const DeviceId device = device_of(subgroup);
  DeviceLine& line = *lines_[static_cast<std::size_t>(index_of(device))];
  Result<runtime::Pool::Lease> reader = co_await line.reader.acquire(
      waiting_for("the subgroup before it to be read", device, subgroup));
  CO_RETURN_IF_ERROR(reader);
  if (crosses_devices(subgroup)) {
    Status brought = co_await bring_state(subgroup, set);
    co_return brought;
  }
  std::array<runtime::Operation, kMaxVariables> reads;
  for (std::int32_t v = 0; v < geometry().variable_count; ++v) {
    reads[static_cast<std::size_t>(v)] = state_read(subgroup, v, set, update);
  }
  Status status = co_await runtime::together<kMaxVariables>(
      std::span(reads).first(static_cast<std::size_t>(geometry().variable_count)));
  co_return status;
}

runtime::Task<Status> Offload::read_all(SubgroupId subgroup, const BufferSet& set) {
  runtime::TaskGroup reads(runtime());
  reads.spawn(read_state(subgroup, set, this_update()));
  reads.spawn(read_gradient(subgroup, set));
  Status status = co_await reads.join();
  co_return status;
}

runtime::Task<Status> Offload::read_gradient(SubgroupId subgroup, const BufferSet& set) {
  if (options_.gradient_tier == GradientTier::memory) co_return ok_status();
  const DeviceId device = device_of(subgroup);
  DeviceLine& line = *lines_[static_cast<std::size_t>(index_of(device))];
  Result<runtime::Pool::Lease> reader = co_await line.reader.acquire(
      waiting_for("the subgroup before it to be read", device, subgroup));
  CO_RETURN_IF_ERROR(reader);
  Status status = co_await read_operation(
      device, update_owner(runtime::Stage::gradient_read, subgroup),
      {gradient_place(subgroup), set.gradient, gradient_format_.size_bytes(subgroup)});
  co_return status;
}

runtime::Task<Status> Offload::write_state(SubgroupId subgroup, const BufferSet& set) {
  std::array<runtime::Operation, kMaxVariables> writes;
  for (std::int32_t v = 0; v < geometry().variable_count; ++v) {
    writes[static_cast<std::size_t>(v)] = state_write(subgroup, v, set);
  }
  Status status = co_await runtime::together<kMaxVariables>(
      std::span(writes).first(static_cast<std::size_t>(geometry().variable_count)));
  co_return status;
}

runtime::Task<Status> Offload::update_one(SubgroupId subgroup, const BufferSet& set) {
  const csd::UpdateCommand command = update_command(subgroup, set);
  Status status = co_await update_operation(
      command, next_checksums_[static_cast<std::size_t>(index_of(subgroup))], device_of(subgroup));
  co_return status;
}

csd::UpdateCommand Offload::update_command(SubgroupId subgroup, const BufferSet& set) const {
  const auto at = static_cast<std::size_t>(index_of(subgroup));
  csd::UpdateCommand command;
  command.subgroup = subgroup;
  command.scalars = decision_.scalars;
  CHECK_EQ(optimizer::rule_info(command.scalars).state_count(), geometry().variable_count);
  command.arrays.element_count = geometry().element_count(subgroup);
  command.is_sparse = options_.is_sparse();
  command.expected = record_.subgroups[at].checksums;
  if (!has_payload()) return command;
  for (std::size_t v = 0; v < kMaxVariables; ++v) command.arrays.state[v] = floats(set.state[v]);
  const std::span<std::byte> gradient_bytes = options_.gradient_tier == GradientTier::memory
                                                  ? parts_.memory->gradient(subgroup)
                                                  : set.gradient;
  command.arrays.gradient = gradient_bytes.data();
  command.sparse_gradient = gradient_bytes;
  command.arrays.gradient_kind = options_.wire_gradient_kind();
  command.arrays.parameter_kind = options_.parameter_kind;
  if (options_.method == Method::host) {
    command.arrays.parameters = parts_.parameters.data() + geometry().first_element(subgroup);
  } else if (!set.parameters.empty()) {
    command.arrays.parameters = reinterpret_cast<std::uint16_t*>(set.parameters.data());
  }
  command.gradient_checks = gradient_checks_[at];
  const state::SlotId slot = parts_.state_layout->current(subgroup);
  for (std::int32_t v = 0; v < geometry().variable_count; ++v) {
    const csd::DrivePlace place = state_place(slot, v, command.arrays.element_count);
    command.source.state_file = place.file;
    command.source.state_offset_bytes[static_cast<std::size_t>(v)] = place.offset_bytes;
  }
  const csd::DrivePlace gradient = gradient_place(subgroup);
  command.source.gradient_file = gradient.file;
  command.source.gradient_offset_bytes = gradient.offset_bytes;
  return command;
}

runtime::Operation Offload::update_operation(const csd::UpdateCommand& command,
                                             csd::UpdatedChecksums& updated, DeviceId device) {
  if (options_.method == Method::csd) {
    csd::CsdDevice& csd = *parts_.devices->csds[static_cast<std::size_t>(index_of(device))];
    runtime::Operation operation = csd.update(command, updated);
    operation.label.step = update_step_;
    return operation;
  }
  const platform::Platform& platform = *parts_.platform;
  const auto engine = static_cast<std::size_t>(platform::index_of(platform.host_engine));
  runtime::Operation operation;
  operation.runtime = &runtime();
  operation.label.stage = runtime::Stage::update;
  operation.label.device = device;
  operation.label.subgroup = command.subgroup;
  operation.label.step = update_step_;
  operation.cost = csd::update_cost(command, platform.host_engine, platform.engines[engine]);
  if (has_payload()) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.function = [&command, &updated] { return csd::run_update(command, updated); };
  }
  return operation;
}

runtime::Task<Status> Offload::send_parameters_up(SubgroupId subgroup, const BufferSet& set) {
  if (options_.method == Method::host) co_return ok_status();  // the kernel wrote them in place
  const std::int64_t count = geometry().element_count(subgroup);
  if (options_.wire == Wire::native) {
    const DeviceId device = device_of(subgroup);
    std::span<std::byte> host;
    if (has_payload()) {
      const auto first = static_cast<std::size_t>(geometry().first_element(subgroup));
      host =
          std::as_writable_bytes(parts_.parameters.subspan(first, static_cast<std::size_t>(count)));
    }
    Status status =
        co_await parts_.devices->csds[static_cast<std::size_t>(index_of(device))]->sync_from_device(
            update_owner(runtime::Stage::parameters_up, subgroup), set.parameters, host, count * 2);
    co_return status;
  }
  const std::int64_t chunk = options_.bounce_bytes / 4;
  runtime::TaskGroup staged(runtime());
  Status status;
  for (std::int64_t first = 0; status.ok() && first < count; first += chunk) {
    status =
        co_await send_parameter_chunk(subgroup, set, first, std::min(chunk, count - first), staged);
  }
  Status in = co_await staged.join();
  if (!status.ok()) co_return status;
  co_return in;
}

// One chunk comes up at a time, so that the one before it is narrowed meanwhile.
runtime::Task<Status> Offload::send_parameter_chunk(SubgroupId subgroup, const BufferSet& set,
                                                    std::int64_t first, std::int64_t count,
                                                    runtime::TaskGroup& staged) {
  const DeviceId device = device_of(subgroup);
  Result<runtime::Pool::Lease> lease =
      co_await bounces_.acquire(waiting_for("a bounce buffer for parameters", device, subgroup));
  CO_RETURN_IF_ERROR(lease);
  std::span<const std::byte> source;
  if (has_payload()) source = set.state[0].subspan(static_cast<std::size_t>(first * 4));
  Status up =
      co_await parts_.devices->csds[static_cast<std::size_t>(index_of(device))]->sync_from_device(
          update_owner(runtime::Stage::parameters_up, subgroup), source,
          parts_.memory->bounce(lease->index()), count * 4);
  CO_RETURN_IF_ERROR(up);
  staged.spawn(narrow_parameters(subgroup, first, count, std::move(*lease)));
  co_return ok_status();
}

runtime::Task<Status> Offload::narrow_parameters(SubgroupId subgroup, std::int64_t first,
                                                 std::int64_t count, runtime::Pool::Lease lease) {
  const std::span<std::byte> bounce = parts_.memory->bounce(lease.index());
  runtime::OperationLabel label;
  label.stage = runtime::Stage::parameters_in;
  label.subgroup = subgroup;
  label.step = update_step_;
  runtime::Operation narrow = host_kernel(label, count);
  if (has_payload()) {
    std::uint16_t* to = parts_.parameters.data() + geometry().first_element(subgroup) + first;
    narrow.work.kind = runtime::WorkKind::function;
    narrow.work.function = [this, bounce, to, count] {
      optimizer::narrow(floats(bounce), options_.parameter_kind, to, count);
      return ok_status();
    };
  }
  Status in = co_await narrow;
  co_return in;
}

}  // namespace sluice::offload
