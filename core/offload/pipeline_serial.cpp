// pipeline=serial: read, update, write, parameters up, one after the other, and only then the next
// subgroups. It is what the others are measured against. The devices go in step, a subgroup of each
// at a time: with method=host as the stripes of one RAID 0 do, with method=csd as rounds that begin
// when the one before has ended on all devices.

#include "core/offload/device_line.h"
#include "core/offload/offload.h"

namespace sluice::offload {

runtime::Task<Status> Offload::update_in_step() {
  Status ready = co_await gradients_ready_.wait(waiting_for("gradients", kNoDevice, kNoSubgroup));
  CO_RETURN_IF_ERROR(ready);
  if (!decision_.apply) co_return ok_status();
  for (std::size_t round = 0; round < round_count(); ++round) {
    Status status = co_await update_round(round);
    CO_RETURN_IF_ERROR(status);
  }
  co_return ok_status();
}

runtime::Task<Status> Offload::update_round(std::size_t round) {
  for (const auto& line : lines_) {
    if (round >= line->subgroups.size()) continue;
    const SubgroupId subgroup = line->subgroups[round];
    Result<runtime::Pool::Lease> set =
        co_await line->sets.acquire(waiting_for("a buffer set", device_of(subgroup), subgroup));
    CO_RETURN_IF_ERROR(set);
    line->round_set = std::move(*set);
  }
  Status status = co_await update_stripes(round);
  for (const auto& line : lines_) line->round_set.release();
  co_return status;
}

runtime::Task<Status> Offload::update_stripes(std::size_t round) {
  for (const auto phase : {&Offload::read_all, &Offload::update_one, &Offload::write_state,
                           &Offload::send_parameters_up}) {
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
