// pipeline=serial: read, update, write, parameters up, one after the other, and only then the next
// subgroup. It is what the others are measured against.
//
// method=csd: each device goes through its own subgroups. method=host: the devices go in step, a
// subgroup of each at a time, as the stripes of one RAID 0 do: all are read, then updated, then
// written.

#include <algorithm>

#include "core/offload/device_line.h"
#include "core/offload/offload.h"

namespace sluice::offload {

runtime::Task<Status> Offload::update_serially(DeviceId device) {
  Status ready = co_await gradients_ready_.wait(waiting_for("gradients", device, kNoSubgroup));
  CO_RETURN_IF_ERROR(ready);
  if (!decision_.apply) co_return ok_status();
  const BufferSet& set = parts_.memory->set(device, 0);
  for (const SubgroupId subgroup : lines_[static_cast<std::size_t>(index_of(device))]->subgroups) {
    Status read = co_await read_all(subgroup, set);
    CO_RETURN_IF_ERROR(read);
    Status updated = co_await update_one(subgroup, set);
    CO_RETURN_IF_ERROR(updated);
    Status written = co_await write_state(subgroup, set);
    CO_RETURN_IF_ERROR(written);
    Status up = co_await send_parameters_up(subgroup, set);
    CO_RETURN_IF_ERROR(up);
  }
  co_return ok_status();
}

runtime::Task<Status> Offload::update_in_step() {
  Status ready = co_await gradients_ready_.wait(waiting_for("gradients", kNoDevice, kNoSubgroup));
  CO_RETURN_IF_ERROR(ready);
  if (!decision_.apply) co_return ok_status();
  std::size_t round_count = 0;
  for (const auto& line : lines_) round_count = std::max(round_count, line->subgroups.size());
  for (std::size_t round = 0; round < round_count; ++round) {
    Status status = co_await update_round(round);
    CO_RETURN_IF_ERROR(status);
  }
  co_return ok_status();
}

runtime::Task<Status> Offload::update_round(std::size_t round) {
  for (const auto phase : {&Offload::read_all, &Offload::update_one, &Offload::write_state}) {
    runtime::TaskGroup stripes(runtime());
    for (const auto& line : lines_) {
      if (round >= line->subgroups.size()) continue;
      const SubgroupId subgroup = line->subgroups[round];
      stripes.spawn((this->*phase)(subgroup, parts_.memory->set(device_of(subgroup), 0)));
    }
    Status status = co_await stripes.join();
    CO_RETURN_IF_ERROR(status);
  }
  co_return ok_status();
}

}  // namespace sluice::offload
