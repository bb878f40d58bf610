// Before the first step: write a new state, or read the 16-bit copy out of a committed one. Both go
// through bounce buffers, subgroup by subgroup, so that no part of the state is in memory as a
// whole.

#include <cstring>

#include "core/offload/device_line.h"
#include "core/offload/offload.h"
#include "storage/state/checksum.h"

namespace sluice::offload {
namespace {

runtime::Waiting waiting_for_bounce(SubgroupId subgroup) {
  runtime::Waiting waiting;
  waiting.what = "a bounce buffer for the state";
  waiting.subgroup = subgroup;
  return waiting;
}

}  // namespace

runtime::Task<Status> Offload::create_state(const FillInitial& fill,
                                            const state::TrainingPosition& position) {
  for (std::size_t s = 0; s < next_slot_.size(); ++s) {
    next_slot_[s] = parts_.state_layout->current(SubgroupId{static_cast<std::int32_t>(s)});
  }
  for (std::int32_t d = 0; d < geometry().device_count; ++d) {
    this_update().tasks.spawn(for_each_subgroup_of(DeviceId{d}, &fill));
  }
  Status written = co_await this_update().tasks.join();
  CO_RETURN_IF_ERROR(written);
  decision_.apply = true;
  Status committed = co_await make_commit(position);
  co_return committed;
}

runtime::Task<Status> Offload::load_parameters() {
  for (std::int32_t d = 0; d < geometry().device_count; ++d) {
    this_update().tasks.spawn(for_each_subgroup_of(DeviceId{d}, nullptr));
  }
  Status status = co_await this_update().tasks.join();
  co_return status;
}

runtime::Task<Status> Offload::for_each_subgroup_of(DeviceId device, const FillInitial* fill) {
  for (const SubgroupId subgroup : lines_[static_cast<std::size_t>(index_of(device))]->subgroups) {
    if (fill != nullptr) {
      Status created = co_await create_subgroup(subgroup, *fill);
      CO_RETURN_IF_ERROR(created);
    } else {
      Status loaded = co_await load_subgroup(subgroup);
      CO_RETURN_IF_ERROR(loaded);
    }
  }
  co_return ok_status();
}

runtime::Task<Status> Offload::create_subgroup(SubgroupId subgroup, const FillInitial& fill) {
  Result<runtime::Pool::Lease> lease = co_await bounces_.acquire(waiting_for_bounce(subgroup));
  CO_RETURN_IF_ERROR(lease);
  const state::SlotId slot = parts_.state_layout->current(subgroup);
  const csd::Drive& drive =
      *parts_.devices->drives[static_cast<std::size_t>(index_of(slot.device))];
  const std::span<std::byte> bounce = parts_.memory->bounce(lease->index());
  const std::int64_t chunk = options_.bounce_bytes / 4;
  const std::int64_t count = geometry().element_count(subgroup);
  for (std::int32_t v = 0; v < geometry().variable_count; ++v) {
    state::Checksummer checksummer;
    for (std::int64_t first = 0; first < count; first += chunk) {
      const std::int64_t chunk_count = std::min(chunk, count - first);
      runtime::OperationLabel label;
      label.stage = runtime::Stage::create_state;
      label.subgroup = subgroup;
      runtime::Operation make = host_kernel(label, chunk_count);
      make.work.kind = runtime::WorkKind::function;
      const std::int64_t flat_first = geometry().first_element(subgroup) + first;
      make.work.function = [this, &fill, &checksummer, bounce, v, flat_first, chunk_count] {
        const std::span<float> values(reinterpret_cast<float*>(bounce.data()),
                                      static_cast<std::size_t>(chunk_count));
        std::memset(bounce.data(), 0, bounce.size());  // all but the weights, and padding
        if (v == 0) {
          fill(flat_first, values);
          optimizer::narrow(values.data(), options_.parameter_kind,
                            parts_.parameters.data() + flat_first, chunk_count);
        }
        checksummer.add(std::as_bytes(values));
        return ok_status();
      };
      Status made = co_await make;
      CO_RETURN_IF_ERROR(made);
      csd::Transfer transfer{state_place(slot, v, count), bounce, chunk_count * 4};
      transfer.place.offset_bytes += first * 4;
      const csd::Owner owner{runtime::Stage::create_state, subgroup};
      Status written = co_await drive.host_write(owner, transfer);
      CO_RETURN_IF_ERROR(written);
    }
    next_checksums_[static_cast<std::size_t>(index_of(subgroup))][static_cast<std::size_t>(v)] =
        checksummer.digest();
  }
  co_return ok_status();
}

runtime::Task<Status> Offload::load_subgroup(SubgroupId subgroup) {
  Result<runtime::Pool::Lease> lease = co_await bounces_.acquire(waiting_for_bounce(subgroup));
  CO_RETURN_IF_ERROR(lease);
  const state::SlotId slot = parts_.state_layout->current(subgroup);
  const csd::Drive& drive =
      *parts_.devices->drives[static_cast<std::size_t>(index_of(slot.device))];
  const std::span<std::byte> bounce = parts_.memory->bounce(lease->index());
  const std::int64_t chunk = options_.bounce_bytes / 4;
  const std::int64_t count = geometry().element_count(subgroup);
  const csd::DrivePlace place = state_place(slot, 0, count);
  state::Checksummer checksummer;
  for (std::int64_t first = 0; first < count; first += chunk) {
    const std::int64_t chunk_count = std::min(chunk, count - first);
    csd::Transfer transfer{place, bounce, chunk_count * 4};
    transfer.place.offset_bytes += first * 4;
    const csd::Owner owner{runtime::Stage::load_state, subgroup};
    Status read = co_await drive.host_read(owner, transfer);
    CO_RETURN_IF_ERROR(read);
    runtime::OperationLabel label;
    label.stage = runtime::Stage::load_state;
    label.subgroup = subgroup;
    runtime::Operation take = host_kernel(label, chunk_count);
    take.work.kind = runtime::WorkKind::function;
    const std::int64_t flat_first = geometry().first_element(subgroup) + first;
    take.work.function = [this, &checksummer, bounce, flat_first, chunk_count] {
      checksummer.add(bounce.first(static_cast<std::size_t>(chunk_count * 4)));
      optimizer::narrow(reinterpret_cast<const float*>(bounce.data()), options_.parameter_kind,
                        parts_.parameters.data() + flat_first, chunk_count);
      return ok_status();
    };
    Status taken = co_await take;
    CO_RETURN_IF_ERROR(taken);
  }
  if (checksummer.digest() !=
      record_.subgroups[static_cast<std::size_t>(index_of(subgroup))].checksums[0]) {
    co_return make_error(ErrorCode::corrupt,
                         "{}: master_weights of subgroup {} at offset {} are not what was "
                         "committed; `sluice state DIR --verify` lists all damage",
                         place.file->path(), index_of(subgroup), place.offset_bytes);
  }
  co_return ok_status();
}

}  // namespace sluice::offload
