// A new device map between steps: the state of a subgroup that changes its device is copied from
// its slot there to one on the new device, through a bounce buffer. The step after the commit finds
// it where the map says; a crash before finds the old map.

#include <algorithm>

#include "core/offload/device_line.h"
#include "core/offload/offload.h"
#include "storage/state/checksum.h"

namespace sluice::offload {

runtime::Task<Status> Offload::move_state(const state::DeviceMap& device_map) {
  for (std::size_t s = 0; s < device_map.size(); ++s) {
    const SubgroupId subgroup{static_cast<std::int32_t>(s)};
    if (device_of(subgroup) == device_map[s]) continue;
    record_.subgroups[s].slot = parts_.state_layout->take_next(subgroup, device_map[s]);
  }
  Status status = parts_.store->reserve();
  if (status.ok()) {
    for (std::size_t s = 0; s < device_map.size(); ++s) {
      const SubgroupId subgroup{static_cast<std::int32_t>(s)};
      if (device_of(subgroup) == device_map[s]) continue;
      updates_.spawn(move_subgroup(subgroup, record_.subgroups[s].slot));
    }
    status = co_await updates_.join();
  }
  if (status.ok()) status = parts_.store->commit(record_);
  if (!status.ok()) {
    parts_.state_layout->abandon();
    record_ = parts_.store->committed();
  }
  co_return status;
}

runtime::Task<Status> Offload::move_subgroup(SubgroupId subgroup, state::SlotId to) {
  const state::SlotId from = parts_.state_layout->current(subgroup);
  Result<runtime::Pool::Lease> lease = co_await bounces_.acquire(
      waiting_for("a bounce buffer for state that moves", from.device, subgroup));
  CO_RETURN_IF_ERROR(lease);
  const std::span<std::byte> bounce = parts_.memory->bounce(lease->index());
  const csd::Drive& source =
      *parts_.devices->drives[static_cast<std::size_t>(index_of(from.device))];
  const csd::Drive& target = *parts_.devices->drives[static_cast<std::size_t>(index_of(to.device))];
  const csd::Owner owner{runtime::Stage::move_state, subgroup};
  const std::int64_t count = geometry().element_count(subgroup);
  const std::int64_t chunk = options_.bounce_bytes / 4;
  for (std::int32_t v = 0; v < geometry().variable_count; ++v) {
    state::Checksummer checksummer;
    for (std::int64_t first = 0; first < count; first += chunk) {
      const std::int64_t size_bytes = std::min(chunk, count - first) * 4;
      csd::Transfer read{state_place(from, v, count), bounce, size_bytes};
      read.place.offset_bytes += first * 4;
      Status has_read = co_await source.host_read(owner, read);
      CO_RETURN_IF_ERROR(has_read);
      checksummer.add(bounce.first(static_cast<std::size_t>(size_bytes)));
      csd::Transfer write{state_place(to, v, count), bounce, size_bytes};
      write.place.offset_bytes += first * 4;
      Status written = co_await target.host_write(owner, write);
      CO_RETURN_IF_ERROR(written);
    }
    const state::CommitRecord& committed = parts_.store->committed();
    if (checksummer.digest() != committed.subgroups[static_cast<std::size_t>(index_of(subgroup))]
                                    .checksums[static_cast<std::size_t>(v)]) {
      co_return make_error(
          ErrorCode::corrupt,
          "{}: variable {} of subgroup {} at offset {} is not what was committed; `sluice state "
          "DIR --verify` lists all damage",
          parts_.store->file(from.device).path(), v, index_of(subgroup),
          state_place(from, v, count).offset_bytes);
    }
  }
  co_return ok_status();
}

}  // namespace sluice::offload
