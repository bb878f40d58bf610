// pipeline=serial: read, update, write, parameters up, one after the other, and only then the next
// subgroups. It is what the others are measured against. The devices go in step, a subgroup of each
// at a time: with method=host as the stripes of one RAID 0 do, with method=csd as rounds that begin
// when the one before has ended on all devices.

#include <array>

#include "core/offload/update_pipeline.h"

namespace sluice::offload {
namespace {

class SerialPipeline final : public UpdatePipeline {
 public:
  explicit SerialPipeline(const PipelineParts& parts)
      : parts_(parts), round_sets_(parts.sites.count()) {}

  void start(StepUpdate& update) override { update.tasks.spawn(run(update)); }

 private:
  runtime::Task<Status> run(StepUpdate& update) {
    Status decided = co_await update.decided.wait(waiting_for("gradients", kNoDevice, kNoSubgroup));
    CO_RETURN_IF_ERROR(decided);
    if (!update.decision.apply) co_return ok_status();
    for (std::size_t round = 0; round < parts_.round_count(); ++round) {
      Status status = co_await run_round(update, round);
      CO_RETURN_IF_ERROR(status);
    }
    co_return ok_status();
  }

  runtime::Task<Status> run_round(StepUpdate& update, std::size_t round) {
    for (const DeviceId device : ids_of(parts_.sites)) {
      if (!parts_.takes_part(device, round)) continue;
      Result<runtime::Pool::Lease> set = co_await parts_.sites[device]->set_turns().acquire(
          waiting_for("a buffer set", device, parts_.subgroups_of[device][round]));
      CO_RETURN_IF_ERROR(set);
      round_sets_[device] = std::move(*set);
    }
    Status status = co_await run_stripes(update, round);
    for (runtime::Pool::Lease& set : round_sets_) set.release();
    co_return status;
  }

  using Phase = runtime::Task<Status> (SubgroupUpdate::*)(StepUpdate&, SubgroupId, std::int32_t);
  static constexpr std::array<Phase, 4> kPhases = {
      &SubgroupUpdate::read_all, &SubgroupUpdate::run_kernel, &SubgroupUpdate::write_state,
      &SubgroupUpdate::parameters_up};

  runtime::Task<Status> run_stripes(StepUpdate& update, std::size_t round) {
    for (const Phase phase : kPhases) {
      runtime::TaskGroup stripes(parts_.runtime);
      start_stripes(stripes, phase, update, round);
      Status status = co_await stripes.join();
      CO_RETURN_IF_ERROR(status);
    }
    co_return ok_status();
  }

  // No part of the coroutine: with sanitizers g++ 12 loses the object of a call through a pointer
  // to a member there.
  void start_stripes(runtime::TaskGroup& stripes, Phase phase, StepUpdate& update,
                     std::size_t round) {
    for (const DeviceId device : ids_of(parts_.sites)) {
      if (!parts_.takes_part(device, round)) continue;
      stripes.spawn((parts_.subgroups.*phase)(update, parts_.subgroups_of[device][round],
                                              round_sets_[device].index()));
    }
  }

  PipelineParts parts_;
  IdVector<DeviceId, runtime::Pool::Lease> round_sets_;  // of the round under way
};

}  // namespace

std::unique_ptr<UpdatePipeline> make_serial_pipeline(const PipelineParts& parts) {
  return std::make_unique<SerialPipeline>(parts);
}

}  // namespace sluice::offload
