// pipeline=serial: read, update, write, parameters up, one after the other, and only then the next
// subgroups. It is what the others are measured against. The devices go in step, a subgroup of each
// at a time: with method=host as the stripes of one RAID 0 do, with method=csd as rounds that begin
// when the one before has ended on all devices.

#include <array>

#include "core/offload/buffer_pool.h"
#include "core/offload/step_update.h"
#include "core/offload/update_pipeline.h"

namespace sluice::offload {
namespace {

class SerialPipeline final : public UpdatePipeline {
 public:
  explicit SerialPipeline(const PipelineParts& parts)
      : parts_(parts),
        rounds_(parts),
        run_round_([this](StepUpdate& update, const Rounds::Members& members) {
          return run_round(update, members);
        }),
        round_sets_(parts.sites.count()) {}

  void start(StepUpdate& update) override { update.tasks.spawn(rounds_.run(update, run_round_)); }

 private:
  runtime::Task<Status> run_round(StepUpdate& update, const Rounds::Members& members) {
    for (const DeviceId device : ids_of(members)) {
      if (members[device] == kNoSubgroup) continue;
      Result<runtime::Pool::Lease> set = co_await parts_.sites[device]->set_turns().acquire(
          waiting_for("a buffer set", device, members[device]));
      CO_RETURN_IF_ERROR(set);
      round_sets_[device] = std::move(*set);
    }
    Status status = co_await run_stripes(update, members);
    for (runtime::Pool::Lease& set : round_sets_) set.release();
    co_return status;
  }

  using Phase = runtime::Task<Status> (SubgroupUpdate::*)(StepUpdate&, SubgroupId, std::int32_t);
  static constexpr std::array<Phase, 4> kPhases = {
      &SubgroupUpdate::read_all, &SubgroupUpdate::run_kernel, &SubgroupUpdate::write_state,
      &SubgroupUpdate::parameters_up};

  runtime::Task<Status> run_stripes(StepUpdate& update, const Rounds::Members& members) {
    for (const Phase phase : kPhases) {
      if (update.is_skipped()) break;
      runtime::TaskGroup stripes(parts_.runtime);
      start_stripes(stripes, phase, update, members);
      Status status = co_await stripes.join();
      CO_RETURN_IF_ERROR(status);
    }
    co_return ok_status();
  }

  // No part of the coroutine: with sanitizers g++ 12 loses the object of a call through a pointer
  // to a member there.
  void start_stripes(runtime::TaskGroup& stripes, Phase phase, StepUpdate& update,
                     const Rounds::Members& members) {
    for (const DeviceId device : ids_of(members)) {
      if (members[device] == kNoSubgroup) continue;
      stripes.spawn(
          (parts_.subgroups.*phase)(update, members[device], round_sets_[device].index()));
    }
  }

  PipelineParts parts_;
  Rounds rounds_;
  Rounds::Run run_round_;
  IdVector<DeviceId, runtime::Pool::Lease> round_sets_;  // of the round under way
};

}  // namespace

std::unique_ptr<UpdatePipeline> make_serial_pipeline(const PipelineParts& parts) {
  return std::make_unique<SerialPipeline>(parts);
}

}  // namespace sluice::offload
