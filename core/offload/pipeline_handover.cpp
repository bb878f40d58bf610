// pipeline=handover: the transfer handler of Smart-Infinity (HPCA 2024, section IV-B, figure 5). A
// device has one buffer for each variable, handed from a subgroup to the next variable by variable:
// when a subgroup has been updated its master weights are written first and go up, since forward
// needs them; the moments, which nobody waits for, are written one after the other while the next
// subgroup's master weights, and then its first moment, are read into the buffers that have become
// free. Writing master weights, reading the last moment and updating do not overlap.
//
// As in the paper's program the devices go in rounds, a subgroup of each at a time: a round begins
// when all parameters of the one before are up.

#include <algorithm>

#include "core/offload/device_line.h"
#include "core/offload/offload.h"

namespace sluice::offload {

runtime::Task<Status> Offload::update_by_handover() {
  Status ready = co_await gradients_ready_.wait(waiting_for("gradients", kNoDevice, kNoSubgroup));
  CO_RETURN_IF_ERROR(ready);
  if (!decision_.apply) co_return ok_status();
  runtime::TaskGroup lazy(runtime());
  Status status;
  for (std::size_t round = 0; status.ok() && round < round_count(); ++round) {
    runtime::TaskGroup urgent(runtime());
    for (const auto& line : lines_) {
      if (round >= line->subgroups.size()) continue;
      urgent.spawn(handover_subgroup(line->subgroups[round], lazy));
    }
    status = co_await urgent.join();
  }
  Status written = co_await lazy.join();
  if (!status.ok()) co_return status;
  co_return written;
}

runtime::Task<Status> Offload::handover_subgroup(SubgroupId subgroup, runtime::TaskGroup& lazy) {
  const DeviceId device = device_of(subgroup);
  DeviceLine& line = *lines_[static_cast<std::size_t>(index_of(device))];
  const BufferSet& set = parts_.memory->set(device, 0);
  // No lease: the gradient's buffer is free again when the round before has ended.
  Status gradient_read = co_await read_gradient(subgroup, set);
  CO_RETURN_IF_ERROR(gradient_read);
  VariableLeases variables;
  for (std::int32_t v = 0; v < geometry().variable_count; ++v) {
    const auto at = static_cast<std::size_t>(v);
    Result<runtime::Pool::Lease> variable =
        co_await line.variables[at]->acquire(waiting_for("a variable's buffer", device, subgroup));
    CO_RETURN_IF_ERROR(variable);
    variables[at] = std::move(*variable);
    Status read;
    if (crosses_devices(subgroup)) {
      read = co_await bring_variable(subgroup, v, set);
    } else {
      read = co_await state_read(subgroup, v, set, this_update());
    }
    CO_RETURN_IF_ERROR(read);
  }
  Status updated = co_await update_one(subgroup, set);
  CO_RETURN_IF_ERROR(updated);

  Status written = co_await state_write(subgroup, 0, set);
  CO_RETURN_IF_ERROR(written);
  Status up = co_await send_parameters_up(subgroup, set);
  CO_RETURN_IF_ERROR(up);
  variables[0].release();
  lazy.spawn(write_moments(subgroup, set, std::move(variables)));
  co_return ok_status();
}

runtime::Task<Status> Offload::write_moments(SubgroupId subgroup, const BufferSet& set,
                                             VariableLeases variables) {
  for (std::int32_t v = 1; v < geometry().variable_count; ++v) {
    Status written = co_await state_write(subgroup, v, set);
    CO_RETURN_IF_ERROR(written);
    variables[static_cast<std::size_t>(v)].release();
  }
  co_return ok_status();
}

}  // namespace sluice::offload
