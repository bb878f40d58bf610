// pipeline=nbuffer: `buffers` subgroups under way on each device, each with a buffer set of its
// own; no device waits for another, state is read ahead while forward and backward run, and the
// next step begins at once: its forward follows the parameters up, layer by layer, and what is
// still to be written is written beside it.

#include "core/offload/device_line.h"
#include "core/offload/offload.h"

namespace sluice::offload {

runtime::Task<Status> Offload::update_by_nbuffer(DeviceId device) {
  DeviceLine& line = *lines_[static_cast<std::size_t>(index_of(device))];
  runtime::TaskGroup subgroups(runtime());
  Status stopped;
  for (const SubgroupId subgroup : line.subgroups) {
    Result<runtime::Pool::Lease> set =
        co_await line.sets.acquire(waiting_for("a free buffer set", device, subgroup));
    if (!set.ok()) {
      stopped = set.error();
      break;
    }
    subgroups.spawn(nbuffer_subgroup(subgroup, std::move(*set)));
  }
  Status status = co_await subgroups.join();
  if (!status.ok()) co_return status;
  co_return stopped;
}

runtime::Task<Status> Offload::nbuffer_subgroup(SubgroupId subgroup,
                                                runtime::Pool::Lease set_lease) {
  const DeviceId device = device_of(subgroup);
  const BufferSet& set = parts_.memory->set(device, set_lease.index());
  if (!options_.prefetch) {
    Status ready = co_await gradients_ready_.wait(waiting_for("gradients", device, subgroup));
    CO_RETURN_IF_ERROR(ready);
  }
  if (gradients_ready_.is_set() && !decision_.apply) co_return ok_status();  // nothing to read for
  Status state_read = co_await read_state(subgroup, set);
  CO_RETURN_IF_ERROR(state_read);
  Status ready = co_await gradients_ready_.wait(waiting_for("gradients", device, subgroup));
  CO_RETURN_IF_ERROR(ready);
  if (!decision_.apply) co_return ok_status();
  Status gradient_read = co_await read_gradient(subgroup, set);
  CO_RETURN_IF_ERROR(gradient_read);

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
