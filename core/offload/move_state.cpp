// A subgroup whose next version is written to another device than its state lies on. With
// method=host reading there and writing here is all: both go through host memory anyway. A CSD
// updates what is in its own memory, so with method=csd the state comes once from the other drive
// over the host link into a bounce buffer, and from there over the host link into the memory of the
// device that updates it: as much as an update on the host would read, and as much again.

#include <algorithm>

#include "core/offload/device_line.h"
#include "core/offload/offload.h"

namespace sluice::offload {

bool Offload::crosses_devices(SubgroupId subgroup) const {
  return options_.method == Method::csd && is_moving(subgroup);
}

runtime::Task<Status> Offload::bring_state(SubgroupId subgroup, const BufferSet& set) {
  runtime::TaskGroup variables(runtime());
  for (std::int32_t v = 0; v < geometry().variable_count; ++v) {
    variables.spawn(bring_variable(subgroup, v, set));
  }
  Status status = co_await variables.join();
  co_return status;
}

runtime::Task<Status> Offload::bring_variable(SubgroupId subgroup, std::int32_t variable,
                                              const BufferSet& set) {
  const state::SlotId from = parts_.state_layout->current(subgroup);
  const auto to = static_cast<std::size_t>(index_of(device_of(subgroup)));
  Result<runtime::Pool::Lease> lease = co_await bounces_.acquire(
      waiting_for("a bounce buffer for state that moves", from.device, subgroup));
  CO_RETURN_IF_ERROR(lease);
  const std::span<std::byte> bounce = parts_.memory->bounce(lease->index());
  const csd::Drive& source =
      *parts_.devices->drives[static_cast<std::size_t>(index_of(from.device))];
  const csd::Owner owner = update_owner(runtime::Stage::move_state, subgroup);
  const std::int64_t count = geometry().element_count(subgroup);
  const std::int64_t chunk = options_.bounce_bytes / 4;
  for (std::int64_t first = 0; first < count; first += chunk) {
    const std::int64_t size_bytes = std::min(chunk, count - first) * 4;
    csd::Transfer read{state_place(from, variable, count), bounce, size_bytes};
    read.place.offset_bytes += first * 4;
    Status has_read = co_await source.host_read(owner, read);
    CO_RETURN_IF_ERROR(has_read);
    std::span<std::byte> into;
    if (has_payload()) {
      into = set.state[static_cast<std::size_t>(variable)].subspan(
          static_cast<std::size_t>(first * 4));
    }
    Status synced =
        co_await parts_.devices->csds[to]->sync_to_device(owner, bounce, into, size_bytes);
    CO_RETURN_IF_ERROR(synced);
  }
  co_return ok_status();
}

}  // namespace sluice::offload
