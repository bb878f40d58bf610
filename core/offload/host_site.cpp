// method=host: a subgroup's state is read over the host link into host memory, updated by the
// host's processor, and written back. Reading from another device's drive is the same as from the
// own one. The kernel writes the 16-bit copy in place; with parameter_tier=storage into memory of
// the buffer set, from where it goes to the drive. Parameters of fp32 are the master weights, and
// are copied, or go to the drive, from the buffer set. The copy of split state (state_format) is
// updated where forward reads it, and is in the buffer set only when it is written or read again;
// with parameter_tier=storage it is one variable like the others, and what goes to the drive.

#include <cstring>

#include "core/csd/update_kernel.h"
#include "core/offload/buffer_pool.h"
#include "core/offload/host_kernels.h"
#include "core/offload/offload_memory.h"
#include "core/offload/state_cache.h"
#include "core/offload/update_site.h"
#include "core/optimizer/gradient_stats.h"

namespace sluice::offload {
namespace {

// Without payload the buffers are empty.
using StateArrays = std::array<io::PageAlignedBuffer, kMaxStoredArrays>;

// One subgroup's arrays.
struct HostSet {
  StateArrays state;
  io::PageAlignedBuffer gradient;
  io::PageAlignedBuffer parameters;  // parameter_tier=storage
};

// From variable `first` on.
Result<StateArrays> take_state(const SiteParts& parts, std::int32_t first) {
  const SetSizes& sizes = parts.memory.set_sizes();
  StateArrays state;
  for (std::int32_t v = first; v < parts.geometry.variable_count; ++v) {
    const auto at = static_cast<std::size_t>(v);
    ASSIGN_OR_RETURN(state[at], parts.memory.take(sizes.state_bytes[at]));
  }
  return state;
}

Result<HostSet> take_set(const SiteParts& parts) {
  const SetSizes& sizes = parts.memory.set_sizes();
  HostSet set;
  ASSIGN_OR_RETURN(set.state, take_state(parts, 0));
  if (sizes.gradient_bytes > 0) {
    ASSIGN_OR_RETURN(set.gradient, parts.memory.take(sizes.gradient_bytes));
  }
  if (sizes.parameter_bytes > 0) {
    ASSIGN_OR_RETURN(set.parameters, parts.memory.take(sizes.parameter_bytes));
  }
  return set;
}

class HostSite final : public UpdateSite {
 public:
  HostSite(const SiteParts& parts, DeviceId device, std::vector<HostSet> sets,
           std::vector<StateArrays> kept)
      : UpdateSite(parts.kernels.runtime(), device, parts.options.set_count()),
        parts_(parts),
        sets_(std::move(sets)),
        kept_(std::move(kept)) {}

  runtime::Task<Status> read_state(std::span<const StateTransfer> transfers) override {
    std::array<runtime::Operation, kMaxStoredArrays> reads;
    for (std::size_t v = 0; v < transfers.size(); ++v) {
      const csd::Drive& from = *parts_.drives[transfers[v].lies_on];
      reads[v] = from.host_read(transfers[v].label, host_transfer(transfers[v]));
    }
    Status status =
        co_await runtime::together<kMaxStoredArrays>(std::span(reads).first(transfers.size()));
    co_return status;
  }
  runtime::Operation write_state(const StateTransfer& transfer) override {
    return parts_.drives[transfer.lies_on]->host_write(transfer.label, host_transfer(transfer));
  }
  runtime::Task<Status> write_copy(StateTransfer transfer) override {
    Result<runtime::Pool::Lease> lease = co_await parts_.bounces.acquire(
        waiting_for("a bounce buffer for the parameters' copy", device(), transfer.label.subgroup));
    CO_RETURN_IF_ERROR(lease);
    const std::span<std::byte> bounce = parts_.bounces.bytes(*lease);
    const std::int64_t chunk = round_down(parts_.options.bounce_bytes, kPageBytes);
    for (std::int64_t first = 0; first < transfer.size_bytes; first += chunk) {
      const std::int64_t size_bytes = std::min(chunk, transfer.size_bytes - first);
      Status copied = co_await copy_out(transfer.label, first, size_bytes, bounce);
      CO_RETURN_IF_ERROR(copied);
      Status written = co_await parts_.drives[transfer.lies_on]->host_write(
          transfer.label, {transfer.offset_bytes + first, bounce, size_bytes});
      CO_RETURN_IF_ERROR(written);
    }
    co_return ok_status();
  }
  runtime::Operation read_gradient(const csd::TransferLabel& label, std::int32_t set,
                                   std::int64_t offset_bytes, std::int64_t size_bytes) override {
    return parts_.drives[device()]->host_read(
        label, {offset_bytes, set_at(set).gradient.bytes(), size_bytes});
  }

  runtime::Operation update(const csd::UpdateOrder& order, std::int32_t set,
                            csd::UpdatedChecksums& updated) override {
    const platform::Platform& platform = parts_.kernels.platform();
    runtime::OperationLabel label;
    label.stage = stages::Stage::update;
    label.device = device();
    label.subgroup = order.task.subgroup;
    label.step = order.step;
    return parts_.kernels.kernel(
        label,
        csd::update_cost(order.task, platform.host_engine, platform.engine(platform.host_engine)),
        [&order, memory = memory_of(order, set), &updated] {
          return csd::run_update(order, memory, updated);
        });
  }

  runtime::Task<Status> parameters_up(UpdatedSubgroup updated, std::int32_t set) override {
    if (parts_.options.streams_parameters()) {
      Status written = co_await parts_.drives[device()]->host_write(
          {stages::Stage::parameter_write, updated.subgroup, kNoLayer, updated.step},
          {updated.parameter_offset_bytes, parameters_of(updated.subgroup, set),
           updated.element_count * bytes_of(parts_.options.parameter_kind)});
      co_return written;
    }
    if (is_given_parameters()) co_return ok_status();  // the kernel wrote them in place
    Status in = co_await parameters_in(updated, set);
    co_return in;
  }

  // Not what stays: it is large, and transferred seldom.
  std::vector<std::span<std::byte>> transfer_regions() override {
    std::vector<std::span<std::byte>> regions;
    for (HostSet& set : sets_) {
      for (io::PageAlignedBuffer& array : set.state) add_region(regions, array);
      add_region(regions, set.gradient);
      add_region(regions, set.parameters);
    }
    return regions;
  }
  std::int64_t device_memory_used_bytes() const override { return 0; }

 private:
  static void add_region(std::vector<std::span<std::byte>>& regions, io::PageAlignedBuffer& one) {
    if (one.size_bytes() > 0) regions.push_back(one.bytes());
  }
  HostSet& set_at(std::int32_t set) { return sets_[static_cast<std::size_t>(set)]; }
  StateArrays& state_at(SubgroupId subgroup, std::int32_t set) {
    const std::int32_t place = parts_.cache.place_of(subgroup);
    return place < 0 ? set_at(set).state : kept_[static_cast<std::size_t>(place)];
  }

  csd::HostTransfer host_transfer(const StateTransfer& transfer) {
    return {transfer.offset_bytes,
            array_of(transfer.label.subgroup, transfer.variable, transfer.set).bytes(),
            transfer.size_bytes};
  }
  // The copy that forward reads does not stay in the site's memory.
  io::PageAlignedBuffer& array_of(SubgroupId subgroup, std::int32_t variable, std::int32_t set) {
    const bool is_of_set = variable == 0 && parts_.options.has_copy_in_memory();
    StateArrays& state = is_of_set ? set_at(set).state : state_at(subgroup, set);
    return state[static_cast<std::size_t>(variable)];
  }

  runtime::Operation copy_out(const csd::TransferLabel& of, std::int64_t offset_bytes,
                              std::int64_t size_bytes, std::span<std::byte> to) {
    runtime::OperationLabel label;
    label.stage = of.stage;
    label.device = device();
    label.subgroup = of.subgroup;
    label.step = of.step;
    return parts_.kernels.stage(label, size_bytes / 2, [this, of, offset_bytes, size_bytes, to] {
      const std::int64_t first = parts_.geometry.first_element(of.subgroup) * 2 + offset_bytes;
      std::memcpy(to.data(), parts_.parameters.data() + first,
                  static_cast<std::size_t>(size_bytes));
      return ok_status();
    });
  }

  // What goes to the drive: the kernel's copy, or the master weights.
  std::span<std::byte> parameters_of(SubgroupId subgroup, std::int32_t set) {
    return parts_.options.has_16bit_copy() ? set_at(set).parameters.bytes()
                                           : state_at(subgroup, set)[0].bytes();
  }

  runtime::Operation parameters_in(const UpdatedSubgroup& updated, std::int32_t set) {
    runtime::OperationLabel label;
    label.stage = stages::Stage::parameters_in;
    label.subgroup = updated.subgroup;
    label.step = updated.step;
    return parts_.kernels.stage(
        label, updated.element_count,
        [this, updated, from = state_at(updated.subgroup, set)[0].bytes()] {
          optimizer::put_parameters(
              reinterpret_cast<const float*>(from.data()),
              parts_.parameters.subspan(parts_.geometry.first_element(updated.subgroup),
                                        updated.element_count));
          return ok_status();
        });
  }

  // Whether the kernel has the 16-bit parameters beside the set's state.
  bool is_given_parameters() const {
    return parts_.options.has_16bit_copy() || parts_.options.has_copy_in_memory();
  }

  csd::UpdateMemory memory_of(const csd::UpdateOrder& order, std::int32_t set) {
    csd::UpdateMemory memory;
    for (std::int32_t v = 0; v < order.task.stored.count; ++v) {
      memory.state[static_cast<std::size_t>(v)] =
          array_of(order.task.subgroup, v, set).bytes().data();
    }
    const bool is_in_memory = parts_.options.gradient_tier == GradientTier::memory;
    memory.gradient =
        is_in_memory ? parts_.memory.gradient(order.task.subgroup) : set_at(set).gradient.bytes();
    if (!is_given_parameters()) return memory;
    if (parts_.options.streams_parameters()) {
      memory.parameters = reinterpret_cast<std::uint16_t*>(set_at(set).parameters.bytes().data());
    } else if (parts_.parameters.has_memory()) {
      memory.parameters = parts_.parameters.values_16bit().data() +
                          parts_.geometry.first_element(order.task.subgroup);
    }
    return memory;
  }

  SiteParts parts_;
  std::vector<HostSet> sets_;
  std::vector<StateArrays> kept_;  // by StateCache::place_of
};

}  // namespace

Result<std::unique_ptr<UpdateSite>> make_host_site(const SiteParts& parts, DeviceId device) {
  std::vector<HostSet> sets;
  for (std::int32_t i = 0; i < parts.options.set_count(); ++i) {
    ASSIGN_OR_RETURN(HostSet set, take_set(parts));
    sets.push_back(std::move(set));
  }
  std::vector<StateArrays> kept;
  for (std::size_t i = 0; i < parts.cache.kept()[device].size(); ++i) {
    ASSIGN_OR_RETURN(StateArrays state,
                     take_state(parts, parts.options.has_copy_in_memory() ? 1 : 0));
    kept.push_back(std::move(state));
  }
  return std::unique_ptr<UpdateSite>(
      std::make_unique<HostSite>(parts, device, std::move(sets), std::move(kept)));
}

}  // namespace sluice::offload
