// pipeline=nbuffer: `buffers` subgroups under way on each device, each with a buffer set of its
// own; no device waits for another, and the next step begins at once: its forward follows the
// parameters up, layer by layer, and what is still to be written is written beside it. State is
// read ahead while forward and backward run, each subgroup's as soon as it is written and a buffer
// is free.

#include "core/offload/device_line.h"
#include "core/offload/offload.h"

namespace sluice::offload {

runtime::Task<Status> Offload::update_by_nbuffer(DeviceId device, StepUpdate& update) {
  DeviceLine& line = *lines_[static_cast<std::size_t>(index_of(device))];
  Status read = co_await last_update().all_read.wait(
      waiting_for("the step before it to be read", device, kNoSubgroup));
  CO_RETURN_IF_ERROR(read);
  runtime::TaskGroup subgroups(runtime());
  Status stopped;
  for (std::size_t i = 0; i < line.subgroups.size(); ++i) {
    const SubgroupId subgroup = line.subgroups[i];
    Result<runtime::Pool::Lease> set =
        co_await line.sets.acquire(waiting_for("a free buffer set", device, subgroup));
    if (!set.ok()) {
      stopped = set.error();
      break;
    }
    subgroups.spawn(nbuffer_subgroup(subgroup, *line.state_turns[i], std::move(*set), update));
  }
  Status status = co_await subgroups.join();
  if (!status.ok()) co_return status;
  co_return stopped;
}

runtime::Task<Status> Offload::nbuffer_subgroup(SubgroupId subgroup, runtime::Pool& state_turn,
                                                runtime::Pool::Lease set_lease,
                                                StepUpdate& update) {
  const DeviceId device = device_of(subgroup);
  const BufferSet& set = parts_.memory->set(device, set_lease.index());
  Result<runtime::Pool::Lease> state =
      co_await state_turn.acquire(waiting_for("its state to be written", device, subgroup));
  CO_RETURN_IF_ERROR(state);
  const bool is_skipped =
      update.committed.is_set() && gradients_ready_.is_set() && !decision_.apply;
  if (is_skipped) co_return ok_status();  // nothing to read for
  if (options_.prefetch) {
    Status state_read = co_await read_state(subgroup, set, update);
    CO_RETURN_IF_ERROR(state_read);
  }
  Status committed = co_await update.committed.wait(
      waiting_for("the step before it to be committed", device, subgroup));
  CO_RETURN_IF_ERROR(committed);
  Status ready = co_await gradients_ready_.wait(waiting_for("gradients", device, subgroup));
  CO_RETURN_IF_ERROR(ready);
  if (!decision_.apply) co_return ok_status();
  if (!options_.prefetch) {
    Status state_read = co_await read_state(subgroup, set, update);
    CO_RETURN_IF_ERROR(state_read);
  }
  Status gradient_read = co_await read_gradient(subgroup, set);
  CO_RETURN_IF_ERROR(gradient_read);
  if (--update.unread_count == 0) update.all_read.set();

  Status updated = co_await update_one(subgroup, set);
  CO_RETURN_IF_ERROR(updated);

  runtime::TaskGroup leaving(runtime());
  leaving.spawn(bring_parameters(subgroup, set));
  leaving.spawn(write_state(subgroup, set));
  Status left = co_await leaving.join();
  co_return left;
}

runtime::Task<Status> Offload::bring_parameters(SubgroupId subgroup, const BufferSet& set) {
  Status up = co_await send_parameters_up(subgroup, set);
  CO_RETURN_IF_ERROR(up);
  arrival_.arrived(subgroup);
  co_return ok_status();
}

}  // namespace sluice::offload
