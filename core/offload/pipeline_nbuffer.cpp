// pipeline=nbuffer: `buffers` subgroups under way on each device, each with a buffer set of its
// own; no device waits for another, and the next step begins at once: its forward follows the
// parameters up, layer by layer, and what is still to be written is written beside it. State is
// read ahead while forward and backward run, each subgroup's as soon as it is written and a buffer
// is free.
//
// Why this is safe: a subgroup of step n + 1 waits for its state turn, which step n holds until the
// subgroup is written, so what is read ahead is the version of step n; the slot that step n + 1
// writes is taken only once step n is committed (update.started), so the last commit stays whole;
// and reads ahead begin when step n has read everything (before->unread.none), so they are never in
// the way of the step that forward waits for.
//
// With overlap=exact subgroups are taken from the last on while backward runs, each updated when
// its own gradients are final; from the decision on the rest is taken from the first.

#include "core/offload/buffer_pool.h"
#include "core/offload/step_update.h"
#include "core/offload/update_pipeline.h"

namespace sluice::offload {
namespace {

class NbufferPipeline final : public UpdatePipeline {
 public:
  explicit NbufferPipeline(const PipelineParts& parts) : parts_(parts) {
    for (std::int32_t s = 0; s < parts.geometry.subgroup_count(); ++s) {
      state_turns_.push_back(std::make_unique<runtime::Pool>(parts.runtime, 1));
    }
  }

  bool goes_into_next_step() const override { return true; }

  void start(StepUpdate& update) override {
    for (const DeviceId device : ids_of(parts_.sites)) update.tasks.spawn(run(update, device));
  }

 private:
  runtime::Task<Status> run(StepUpdate& update, DeviceId device) {
    Status read = co_await update.before->unread.none.wait(
        waiting_for("the step before it to be read", device, kNoSubgroup));
    CO_RETURN_IF_ERROR(read);
    runtime::TaskGroup subgroups(parts_.runtime);
    Status taken;
    if (update.speculation.is_on()) taken = co_await take_ahead(update, device, subgroups);
    if (taken.ok()) taken = co_await take_left(update, device, subgroups);
    Status status = co_await subgroups.join();
    if (!status.ok()) co_return status;
    co_return taken;
  }

  // From the last, as their gradients become final, until the decision is made.
  runtime::Task<Status> take_ahead(StepUpdate& update, DeviceId device,
                                   runtime::TaskGroup& subgroups) {
    const std::vector<SubgroupId>& own = parts_.subgroups_of[device];
    for (auto at = own.rbegin(); at != own.rend(); ++at) {
      Result<runtime::Pool::Lease> set = co_await free_set(device, *at);
      CO_RETURN_IF_ERROR(set);
      if (update.decided.is_set()) break;
      update.speculation.on_taken(*at);
      subgroups.spawn(run_subgroup(update, device, *at, std::move(*set)));
    }
    Status decided = co_await update.decided.wait(waiting_for("gradients", device, kNoSubgroup));
    co_return decided;
  }

  // From the first, since forward needs that soonest.
  runtime::Task<Status> take_left(StepUpdate& update, DeviceId device,
                                  runtime::TaskGroup& subgroups) {
    for (const SubgroupId subgroup : parts_.subgroups_of[device]) {
      if (update.is_skipped()) break;
      if (!update.speculation.is_left(subgroup)) continue;
      Result<runtime::Pool::Lease> set = co_await free_set(device, subgroup);
      CO_RETURN_IF_ERROR(set);
      subgroups.spawn(run_subgroup(update, device, subgroup, std::move(*set)));
    }
    co_return ok_status();
  }

  runtime::Pool::Awaiter free_set(DeviceId device, SubgroupId subgroup) {
    return parts_.sites[device]->set_turns().acquire(
        waiting_for("a free buffer set", device, subgroup));
  }

  runtime::Task<Status> run_subgroup(StepUpdate& update, DeviceId device, SubgroupId subgroup,
                                     runtime::Pool::Lease lease) {
    const std::int32_t set = lease.index();
    Result<runtime::Pool::Lease> turn = co_await state_turns_[subgroup]->acquire(
        waiting_for("its state to be written", device, subgroup));
    CO_RETURN_IF_ERROR(turn);
    if (update.is_skipped()) co_return ok_status();  // nothing to read for
    parts_.subgroups.take(update, subgroup);
    if (parts_.options.prefetch) {
      Status state_read = co_await parts_.subgroups.read_state(update, subgroup, set);
      CO_RETURN_IF_ERROR(state_read);
    }
    Status started = co_await update.started.wait(
        waiting_for("the step before it to be committed", device, subgroup));
    CO_RETURN_IF_ERROR(started);
    Status ready = co_await parts_.subgroups.gradients(update, subgroup);
    CO_RETURN_IF_ERROR(ready);
    if (update.is_skipped()) co_return ok_status();
    if (!update.decided.is_set()) parts_.subgroups.readers().begin(subgroup);
    if (!parts_.options.prefetch) {
      Status state_read = co_await parts_.subgroups.read_state(update, subgroup, set);
      CO_RETURN_IF_ERROR(state_read);
    }
    Status gradient_read = co_await parts_.subgroups.read_gradient(update, subgroup, set);
    CO_RETURN_IF_ERROR(gradient_read);
    update.on_read();
    if (update.is_skipped()) co_return ok_status();  // meanwhile

    Status updated = co_await parts_.subgroups.run_kernel(update, subgroup, set);
    CO_RETURN_IF_ERROR(updated);
    if (update.speculation.is_refuted(subgroup)) co_return ok_status();  // it is done again

    runtime::TaskGroup leaving(parts_.runtime);
    leaving.spawn(bring_parameters(update, subgroup, set));
    leaving.spawn(parts_.subgroups.write_state(update, subgroup, set));
    Status left = co_await leaving.join();
    co_return left;
  }

  runtime::Task<Status> bring_parameters(StepUpdate& update, SubgroupId subgroup,
                                         std::int32_t set) {
    Status up = co_await parts_.subgroups.parameters_up(update, subgroup, set);
    CO_RETURN_IF_ERROR(up);
    if (!update.decided.is_set()) {
      update.speculation.on_parameters_up(subgroup);
    } else if (!update.speculation.is_refuted(subgroup)) {
      parts_.arrival.arrived(subgroup);
    }
    co_return ok_status();
  }

  PipelineParts parts_;
  IdVector<SubgroupId, std::unique_ptr<runtime::Pool>> state_turns_;  // one step at a time
};

}  // namespace

std::unique_ptr<UpdatePipeline> make_nbuffer_pipeline(const PipelineParts& parts) {
  return std::make_unique<NbufferPipeline>(parts);
}

}  // namespace sluice::offload
