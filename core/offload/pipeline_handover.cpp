// pipeline=handover: the transfer handler of Smart-Infinity (HPCA 2024, section IV-B, figure 5). A
// device has one buffer for each variable. Two workers take turns at its subgroups and hand the
// buffers over variable by variable: when a subgroup has been updated its master weights are
// written first, since forward needs them, and as soon as they have left their buffer the next
// subgroup's are read into it while the moments, which nobody waits for, are written one after the
// other. Writing master weights, reading the last moment and updating do not overlap.

#include "core/offload/device_line.h"
#include "core/offload/offload.h"

namespace sluice::offload {

runtime::Task<Status> Offload::update_by_handover(DeviceId device) {
  Status ready = co_await gradients_ready_.wait(waiting_for("gradients", device, kNoSubgroup));
  CO_RETURN_IF_ERROR(ready);
  if (!decision_.apply) co_return ok_status();
  DeviceLine& line = *lines_[static_cast<std::size_t>(index_of(device))];
  runtime::TaskGroup subgroups(runtime());
  Status stopped;
  for (const SubgroupId subgroup : line.subgroups) {
    Result<runtime::Pool::Lease> worker =
        co_await line.workers.acquire(waiting_for("one of two workers", device, subgroup));
    if (!worker.ok()) {
      stopped = worker.error();
      break;
    }
    subgroups.spawn(handover_subgroup(subgroup, std::move(*worker)));
  }
  Status status = co_await subgroups.join();
  if (!status.ok()) co_return status;
  co_return stopped;
}

// `worker` is one of two until this ends.
runtime::Task<Status> Offload::handover_subgroup(SubgroupId subgroup,
                                                 [[maybe_unused]] runtime::Pool::Lease worker) {
  const DeviceId device = device_of(subgroup);
  DeviceLine& line = *lines_[static_cast<std::size_t>(index_of(device))];
  const BufferSet& set = parts_.memory->set(device, 0);
  Result<runtime::Pool::Lease> gradient =
      co_await line.gradient.acquire(waiting_for("the gradient's buffer", device, subgroup));
  CO_RETURN_IF_ERROR(gradient);
  Status gradient_read = co_await read_gradient(subgroup, set);
  CO_RETURN_IF_ERROR(gradient_read);
  std::array<runtime::Pool::Lease, state::kMaxVariables> variables;
  for (std::int32_t v = 0; v < geometry().variable_count; ++v) {
    Result<runtime::Pool::Lease> variable =
        co_await line.variables[static_cast<std::size_t>(v)]->acquire(
            waiting_for("a variable's buffer", device, subgroup));
    CO_RETURN_IF_ERROR(variable);
    Status read = co_await state_read(subgroup, v, set);
    CO_RETURN_IF_ERROR(read);
    variables[static_cast<std::size_t>(v)] = std::move(*variable);
  }
  Status updated = co_await update_one(subgroup, set);
  CO_RETURN_IF_ERROR(updated);
  gradient->release();

  runtime::TaskGroup up(runtime());
  up.spawn(send_parameters_up(subgroup, set));
  runtime::TaskGroup leaving(runtime());
  Status written = co_await state_write(subgroup, 0, set);
  leaving.spawn(hand_over_when(up, std::move(variables[0])));
  for (std::int32_t v = 1; written.ok() && v < geometry().variable_count; ++v) {
    written = co_await state_write(subgroup, v, set);
    variables[static_cast<std::size_t>(v)].release();
  }
  Status left = co_await leaving.join();
  if (!written.ok()) co_return written;
  co_return left;
}

// Keeps `buffer` until the parameters have gone up from it.
runtime::Task<Status> Offload::hand_over_when(runtime::TaskGroup& up, runtime::Pool::Lease buffer) {
  Status status = co_await up.join();
  buffer.release();
  co_return status;
}

}  // namespace sluice::offload
