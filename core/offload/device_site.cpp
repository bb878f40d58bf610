// method=csd: a subgroup's state never leaves the device. It is read, updated and written over the
// internal link; the updated parameters go up over the host link: as fp32 master weights through
// bounce buffers, narrowed on the host (wire=fp32), or as the 16-bit copy that the device made
// (wire=native). Parameters of fp32 are the master weights, and go up to their place with either
// wire, and so does the copy of split state (state_format), which is one of its arrays. With
// parameter_tier=storage the parameters go to the drive over the internal link: the
// 16-bit copy, which the device makes with either wire then, or the master weights.
//
// A CSD updates what is in its own memory. State that lies on another device's drive therefore
// comes once over the host link into a bounce buffer, and from there over the host link into this
// device's memory (move_state): as much as an update on the host would read, and as much again.

#include <algorithm>

#include "core/csd/csd_device.h"
#include "core/offload/buffer_pool.h"
#include "core/offload/host_kernels.h"
#include "core/offload/offload_memory.h"
#include "core/offload/state_cache.h"
#include "core/offload/update_site.h"
#include "core/optimizer/gradient_stats.h"

namespace sluice::offload {
namespace {

using StateArrays = std::array<csd::DeviceBuffer, kMaxStoredArrays>;

// One subgroup's arrays; `parameters` is the 16-bit copy, with wire=native or
// parameter_tier=storage.
struct DeviceSet {
  StateArrays state;
  csd::DeviceBuffer gradient;
  csd::DeviceBuffer parameters;
};

Result<StateArrays> take_state(const SetSizes& sizes, csd::DeviceMemory& memory) {
  StateArrays state;
  for (std::size_t v = 0; v < state.size() && sizes.state_bytes[v] > 0; ++v) {
    ASSIGN_OR_RETURN(state[v], memory.allocate(sizes.state_bytes[v], csd::Placement::state));
  }
  return state;
}

Result<DeviceSet> take_set(const SetSizes& sizes, csd::DeviceMemory& memory) {
  DeviceSet set;
  ASSIGN_OR_RETURN(set.state, take_state(sizes, memory));
  if (sizes.gradient_bytes > 0) {
    ASSIGN_OR_RETURN(set.gradient, memory.allocate(sizes.gradient_bytes, csd::Placement::gradient));
  }
  if (sizes.parameter_bytes > 0) {
    ASSIGN_OR_RETURN(set.parameters,
                     memory.allocate(sizes.parameter_bytes, csd::Placement::parameters));
  }
  return set;
}

class DeviceSite final : public UpdateSite {
 public:
  DeviceSite(const SiteParts& parts, csd::CsdDevice& csd, std::vector<DeviceSet> sets,
             std::vector<StateArrays> kept)
      : UpdateSite(parts.kernels.runtime(), csd.id(), parts.options.set_count()),
        parts_(parts),
        csd_(csd),
        sets_(std::move(sets)),
        kept_(std::move(kept)) {}

  runtime::Task<Status> read_state(std::span<const StateTransfer> transfers) override {
    if (transfers.front().lies_on != device()) {
      Status brought = co_await bring_all(transfers);
      co_return brought;
    }
    std::array<runtime::Operation, kMaxStoredArrays> reads;
    for (std::size_t v = 0; v < transfers.size(); ++v) {
      reads[v] = csd_.read(transfers[v].label, device_transfer(transfers[v]));
    }
    Status status =
        co_await runtime::together<kMaxStoredArrays>(std::span(reads).first(transfers.size()));
    co_return status;
  }

  runtime::Operation write_state(const StateTransfer& transfer) override {
    return csd_.write(transfer.label, device_transfer(transfer));
  }
  runtime::Task<Status> write_copy(StateTransfer /*transfer*/) override {
    CHECK(false);  // the copy is in the device's memory, with the rest
    co_return ok_status();
  }
  runtime::Operation read_gradient(const csd::TransferLabel& label, std::int32_t set,
                                   std::int64_t offset_bytes, std::int64_t size_bytes) override {
    return csd_.read(label, {offset_bytes, &set_at(set).gradient, size_bytes});
  }

  runtime::Operation update(const csd::UpdateOrder& order, std::int32_t set,
                            csd::UpdatedChecksums& updated) override {
    const DeviceSet& arrays = set_at(set);
    const StateArrays& state = state_at(order.task.subgroup, set);
    csd::UpdateBuffers buffers;
    for (std::int32_t v = 0; v < parts_.geometry.variable_count; ++v) {
      const auto at = static_cast<std::size_t>(v);
      buffers.state[at] = &state[at];
    }
    buffers.gradient = &arrays.gradient;
    if (!arrays.parameters.empty()) buffers.parameters = &arrays.parameters;
    return csd_.update(order, buffers, updated);
  }

  runtime::Task<Status> parameters_up(UpdatedSubgroup updated, std::int32_t set) override {
    if (parts_.options.streams_parameters()) {
      Status written = co_await csd_.write(
          {stages::Stage::parameter_write, updated.subgroup, kNoLayer, updated.step},
          {updated.parameter_offset_bytes, &parameters_of(updated.subgroup, set),
           updated.element_count * bytes_of(parts_.options.parameter_kind)});
      co_return written;
    }
    const csd::TransferLabel label{stages::Stage::parameters_up, updated.subgroup, kNoLayer,
                                   updated.step};
    const std::int64_t count = updated.element_count;
    if (parts_.options.wire == Wire::native || !parts_.options.has_16bit_copy()) {
      const ParameterSpan place = place_of(updated.subgroup, 0, count);
      Status status = co_await csd_.sync_from_device(
          label, {&parameters_of(updated.subgroup, set), 0}, place.bytes(), place.size_bytes());
      co_return status;
    }
    const std::int64_t chunk = parts_.options.bounce_bytes / 4;
    runtime::TaskGroup narrowed(parts_.kernels.runtime());
    Status status;
    for (std::int64_t first = 0; status.ok() && first < count; first += chunk) {
      status = co_await chunk_up(label, set, first, std::min(chunk, count - first), narrowed);
    }
    Status in = co_await narrowed.join();
    if (!status.ok()) co_return status;
    co_return in;
  }

  std::vector<std::span<std::byte>> transfer_regions() override {
    return csd_.memory().registrable_regions();
  }
  std::int64_t device_memory_used_bytes() const override { return csd_.memory().used_bytes(); }

 private:
  const DeviceSet& set_at(std::int32_t set) const { return sets_[static_cast<std::size_t>(set)]; }
  const StateArrays& state_at(SubgroupId subgroup, std::int32_t set) const {
    const std::int32_t place = parts_.cache.place_of(subgroup);
    return place < 0 ? set_at(set).state : kept_[static_cast<std::size_t>(place)];
  }
  const csd::DeviceBuffer& array(const StateTransfer& transfer) const {
    return state_at(transfer.label.subgroup,
                    transfer.set)[static_cast<std::size_t>(transfer.variable)];
  }
  csd::DeviceTransfer device_transfer(const StateTransfer& transfer) const {
    return {transfer.offset_bytes, &array(transfer), transfer.size_bytes};
  }
  // The device's array that is as the parameters are.
  const csd::DeviceBuffer& parameters_of(SubgroupId subgroup, std::int32_t set) const {
    return parts_.options.has_16bit_copy() ? set_at(set).parameters : state_at(subgroup, set)[0];
  }
  // Where a subgroup's parameters go; no memory without payload.
  ParameterSpan place_of(SubgroupId subgroup, std::int64_t first, std::int64_t count) const {
    if (!parts_.parameters.has_memory()) return {nullptr, count, parts_.options.parameter_kind};
    return parts_.parameters.subspan(parts_.geometry.first_element(subgroup) + first, count);
  }

  runtime::Task<Status> bring_all(std::span<const StateTransfer> transfers) {
    runtime::TaskGroup brought(parts_.kernels.runtime());
    for (const StateTransfer& transfer : transfers) brought.spawn(bring(transfer));
    Status status = co_await brought.join();
    co_return status;
  }

  runtime::Task<Status> bring(StateTransfer transfer) {
    Result<runtime::Pool::Lease> lease = co_await parts_.bounces.acquire(waiting_for(
        "a bounce buffer for state that moves", transfer.lies_on, transfer.label.subgroup));
    CO_RETURN_IF_ERROR(lease);
    const std::span<std::byte> bounce = parts_.bounces.bytes(*lease);
    const csd::Drive& from = *parts_.drives[transfer.lies_on];
    csd::TransferLabel label = transfer.label;
    label.stage = stages::Stage::move_state;
    const std::int64_t chunk = round_down(parts_.options.bounce_bytes, kPageBytes);
    for (std::int64_t first = 0; first < transfer.size_bytes; first += chunk) {
      const std::int64_t size_bytes = std::min(chunk, transfer.size_bytes - first);
      Status read =
          co_await from.host_read(label, {transfer.offset_bytes + first, bounce, size_bytes});
      CO_RETURN_IF_ERROR(read);
      const csd::DeviceRange into{&array(transfer), first};
      Status synced = co_await csd_.sync_to_device(label, bounce, into, size_bytes);
      CO_RETURN_IF_ERROR(synced);
    }
    co_return ok_status();
  }

  // One chunk comes up at a time, so that the one before it is narrowed meanwhile.
  runtime::Task<Status> chunk_up(csd::TransferLabel label, std::int32_t set, std::int64_t first,
                                 std::int64_t count, runtime::TaskGroup& narrowed) {
    Result<runtime::Pool::Lease> lease = co_await parts_.bounces.acquire(
        waiting_for("a bounce buffer for parameters", device(), label.subgroup));
    CO_RETURN_IF_ERROR(lease);
    const csd::DeviceRange master_weights{&state_at(label.subgroup, set)[0], first * 4};
    Status up = co_await csd_.sync_from_device(label, master_weights, parts_.bounces.bytes(*lease),
                                               count * 4);
    CO_RETURN_IF_ERROR(up);
    narrowed.spawn(narrow(label, first, count, std::move(*lease)));
    co_return ok_status();
  }

  runtime::Task<Status> narrow(csd::TransferLabel from, std::int64_t first, std::int64_t count,
                               runtime::Pool::Lease lease) {
    runtime::OperationLabel label;
    label.stage = stages::Stage::parameters_in;
    label.subgroup = from.subgroup;
    label.step = from.step;
    const runtime::Operation operation = parts_.kernels.stage(
        label, count,
        [bounce = parts_.bounces.bytes(lease), to = place_of(from.subgroup, first, count)] {
          optimizer::put_parameters(reinterpret_cast<const float*>(bounce.data()), to);
          return ok_status();
        });
    Status in = co_await operation;
    co_return in;
  }

  SiteParts parts_;
  csd::CsdDevice& csd_;
  std::vector<DeviceSet> sets_;
  std::vector<StateArrays> kept_;  // by StateCache::place_of
};

}  // namespace

Result<std::unique_ptr<UpdateSite>> make_device_site(const SiteParts& parts,
                                                     csd::CsdDevice& device) {
  std::vector<DeviceSet> sets;
  for (std::int32_t i = 0; i < parts.options.set_count(); ++i) {
    ASSIGN_OR_RETURN(DeviceSet set, take_set(parts.memory.set_sizes(), device.memory()));
    sets.push_back(std::move(set));
  }
  std::vector<StateArrays> kept;
  for (std::size_t i = 0; i < parts.cache.kept()[device.id()].size(); ++i) {
    ASSIGN_OR_RETURN(StateArrays state, take_state(parts.memory.set_sizes(), device.memory()));
    kept.push_back(std::move(state));
  }
  return std::unique_ptr<UpdateSite>(
      std::make_unique<DeviceSite>(parts, device, std::move(sets), std::move(kept)));
}

}  // namespace sluice::offload
