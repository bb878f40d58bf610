// pipeline=nbuffer: `buffers` subgroups under way on each device, each with a buffer set of its
// own; no device waits for another, and the next step begins at once: its forward follows the
// parameters up, layer by layer, and what is still to be written is written beside it. State is
// read ahead while forward and backward run, each subgroup's as soon as it is written and a buffer
// is free.
//
// Why this is safe: a subgroup of step n + 1 waits for its state turn, which step n holds until the
// subgroup is written, so what is read ahead is the version of step n; the slot that step n + 1
// writes is taken only once step n is committed (update.started), so the last commit stays whole;
// and reads ahead begin when step n has read everything (before->all_read), so they are never in
// the way of the step that forward waits for.

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
    Status read = co_await update.before->all_read.wait(
        waiting_for("the step before it to be read", device, kNoSubgroup));
    CO_RETURN_IF_ERROR(read);
    runtime::TaskGroup subgroups(parts_.runtime);
    Status stopped;
    for (const SubgroupId subgroup : parts_.subgroups_of[device]) {
      Result<runtime::Pool::Lease> set = co_await parts_.sites[device]->set_turns().acquire(
          waiting_for("a free buffer set", device, subgroup));
      if (!set.ok()) {
        stopped = set.error();
        break;
      }
      subgroups.spawn(run_subgroup(update, device, subgroup, std::move(*set)));
    }
    Status status = co_await subgroups.join();
    if (!status.ok()) co_return status;
    co_return stopped;
  }

  runtime::Task<Status> run_subgroup(StepUpdate& update, DeviceId device, SubgroupId subgroup,
                                     runtime::Pool::Lease lease) {
    const std::int32_t set = lease.index();
    Result<runtime::Pool::Lease> turn = co_await state_turns_[subgroup]->acquire(
        waiting_for("its state to be written", device, subgroup));
    CO_RETURN_IF_ERROR(turn);
    const bool is_skipped = update.decided.is_set() && !update.decision.apply;
    if (is_skipped) co_return ok_status();  // nothing to read for
    if (parts_.options.prefetch) {
      Status state_read = co_await parts_.subgroups.read_state(update, subgroup, set);
      CO_RETURN_IF_ERROR(state_read);
    }
    Status started = co_await update.started.wait(
        waiting_for("the step before it to be committed", device, subgroup));
    CO_RETURN_IF_ERROR(started);
    Status decided = co_await update.decided.wait(waiting_for("gradients", device, subgroup));
    CO_RETURN_IF_ERROR(decided);
    if (!update.decision.apply) co_return ok_status();
    if (!parts_.options.prefetch) {
      Status state_read = co_await parts_.subgroups.read_state(update, subgroup, set);
      CO_RETURN_IF_ERROR(state_read);
    }
    Status gradient_read = co_await parts_.subgroups.read_gradient(update, subgroup, set);
    CO_RETURN_IF_ERROR(gradient_read);
    if (--update.unread_count == 0) update.all_read.set();

    Status updated = co_await parts_.subgroups.run_kernel(update, subgroup, set);
    CO_RETURN_IF_ERROR(updated);

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
    parts_.arrival.arrived(subgroup);
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
