// pipeline=handover: the transfer handler of Smart-Infinity (HPCA 2024, section IV-B, figure 5). A
// device has one buffer for each variable, handed from a subgroup to the next variable by variable:
// when a subgroup has been updated its master weights are written first and go up, since forward
// needs them; the moments, which nobody waits for, are written one after the other while the next
// subgroup's master weights, and then its first moment, are read into the buffers that have become
// free. Writing master weights, reading the last moment and updating do not overlap.
//
// As in the paper's program the devices go in rounds, a subgroup of each at a time: a round begins
// when all parameters of the one before are up.

#include "core/offload/buffer_pool.h"
#include "core/offload/step_update.h"
#include "core/offload/update_pipeline.h"

namespace sluice::offload {
namespace {

constexpr std::int32_t kOnlySet = 0;

class HandoverPipeline final : public UpdatePipeline {
 public:
  explicit HandoverPipeline(const PipelineParts& parts) : parts_(parts), rounds_(parts) {
    for (const DeviceId device : ids_of(parts.sites)) {
      std::vector<std::unique_ptr<runtime::Pool>>& of_device = variables_.emplace_back();
      for (std::int32_t v = 0; v < parts.geometry.variable_count; ++v) {
        of_device.push_back(std::make_unique<runtime::Pool>(parts.runtime, 1, device));
      }
    }
  }

  void start(StepUpdate& update) override { update.tasks.spawn(run(update)); }

 private:
  using Leases = std::array<runtime::Pool::Lease, kMaxStoredArrays>;

  runtime::Task<Status> run(StepUpdate& update) {
    runtime::TaskGroup lazy(parts_.runtime);
    const Rounds::Run run_round = [this, &lazy](StepUpdate& of, const Rounds::Members& members) {
      return run_members(of, members, lazy);
    };
    Status status = co_await rounds_.run(update, run_round);
    Status written = co_await lazy.join();
    if (!status.ok()) co_return status;
    co_return written;
  }

  runtime::Task<Status> run_members(StepUpdate& update, const Rounds::Members& members,
                                    runtime::TaskGroup& lazy) {
    runtime::TaskGroup urgent(parts_.runtime);
    for (const DeviceId device : ids_of(members)) {
      if (members[device] == kNoSubgroup) continue;
      urgent.spawn(run_subgroup(update, device, members[device], lazy));
    }
    Status status = co_await urgent.join();
    co_return status;
  }

  runtime::Task<Status> run_subgroup(StepUpdate& update, DeviceId device, SubgroupId subgroup,
                                     runtime::TaskGroup& lazy) {
    // No lease: the gradient's buffer is free again when the round before has ended.
    Status gradient_read = co_await parts_.subgroups.read_gradient(update, subgroup, kOnlySet);
    CO_RETURN_IF_ERROR(gradient_read);
    Leases variables;
    for (std::int32_t v = 0; v < parts_.geometry.variable_count; ++v) {
      const auto at = static_cast<std::size_t>(v);
      Result<runtime::Pool::Lease> variable = co_await variables_[device][at]->acquire(
          waiting_for("a variable's buffer", device, subgroup));
      CO_RETURN_IF_ERROR(variable);
      variables[at] = std::move(*variable);
      Status read = co_await parts_.subgroups.read_variable(update, subgroup, v, kOnlySet);
      CO_RETURN_IF_ERROR(read);
    }
    if (update.is_skipped()) co_return ok_status();
    Status updated = co_await parts_.subgroups.run_kernel(update, subgroup, kOnlySet);
    CO_RETURN_IF_ERROR(updated);

    Status written = co_await parts_.subgroups.write_variable(update, subgroup, 0, kOnlySet);
    CO_RETURN_IF_ERROR(written);
    Status up = co_await parts_.subgroups.parameters_up(update, subgroup, kOnlySet);
    CO_RETURN_IF_ERROR(up);
    variables[0].release();
    lazy.spawn(write_moments(update, subgroup, std::move(variables)));
    co_return ok_status();
  }

  runtime::Task<Status> write_moments(StepUpdate& update, SubgroupId subgroup, Leases variables) {
    for (std::int32_t v = 1; v < parts_.geometry.variable_count; ++v) {
      Status written = co_await parts_.subgroups.write_variable(update, subgroup, v, kOnlySet);
      CO_RETURN_IF_ERROR(written);
      variables[static_cast<std::size_t>(v)].release();
    }
    co_return ok_status();
  }

  PipelineParts parts_;
  Rounds rounds_;
  // A buffer for each variable of a device.
  IdVector<DeviceId, std::vector<std::unique_ptr<runtime::Pool>>> variables_;
};

}  // namespace

std::unique_ptr<UpdatePipeline> make_handover_pipeline(const PipelineParts& parts) {
  return std::make_unique<HandoverPipeline>(parts);
}

}  // namespace sluice::offload
