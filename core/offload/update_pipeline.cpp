#include "core/offload/update_pipeline.h"

#include <algorithm>

#include "core/offload/buffer_pool.h"
#include "core/offload/step_update.h"

namespace sluice::offload {

Rounds::Rounds(const PipelineParts& parts)
    : parts_(parts), members_(parts.sites.count(), kNoSubgroup) {
  for (const std::vector<SubgroupId>& own : parts.subgroups_of) {
    count_ = std::max(count_, own.size());
  }
}

runtime::Task<Status> Rounds::run(StepUpdate& update, const Run& run_round) {
  if (update.speculation.is_on()) {
    Status ahead = co_await run_ahead(update, run_round);
    CO_RETURN_IF_ERROR(ahead);
  }
  Status decided = co_await update.decided.wait(waiting_for("gradients", kNoDevice, kNoSubgroup));
  CO_RETURN_IF_ERROR(decided);
  if (update.is_skipped()) co_return ok_status();
  for (std::size_t round = 0; round < count_; ++round) {
    Status status = co_await run_round(update, take(update, round));
    CO_RETURN_IF_ERROR(status);
  }
  co_return ok_status();
}

runtime::Task<Status> Rounds::run_ahead(StepUpdate& update, const Run& run_round) {
  for (std::size_t round = count_; round-- > 0;) {
    Status final = co_await gradients(update, round);
    CO_RETURN_IF_ERROR(final);
    if (update.decided.is_set()) break;
    Status status = co_await run_round(update, take(update, round));
    CO_RETURN_IF_ERROR(status);
  }
  co_return ok_status();
}

runtime::Task<Status> Rounds::gradients(StepUpdate& update, std::size_t round) {
  for (const std::vector<SubgroupId>& own : parts_.subgroups_of) {
    if (round >= own.size()) continue;
    Status final = co_await parts_.subgroups.gradients(update, own[round]);
    CO_RETURN_IF_ERROR(final);
  }
  co_return ok_status();
}

// The subgroups that are left of the round.
const Rounds::Members& Rounds::take(StepUpdate& update, std::size_t round) {
  for (const DeviceId device : ids_of(members_)) {
    const std::vector<SubgroupId>& own = parts_.subgroups_of[device];
    const bool is_left = round < own.size() && update.speculation.is_left(own[round]);
    members_[device] = is_left ? own[round] : kNoSubgroup;
    if (!is_left) continue;
    parts_.subgroups.take(update, own[round]);
    if (!update.decided.is_set()) parts_.subgroups.readers().begin(own[round]);
  }
  return members_;
}

std::unique_ptr<UpdatePipeline> make_pipeline(const PipelineParts& parts) {
  switch (parts.options.pipeline) {
    case Pipeline::serial:
      return make_serial_pipeline(parts);
    case Pipeline::handover:
      return make_handover_pipeline(parts);
    case Pipeline::nbuffer:
      break;
  }
  return make_nbuffer_pipeline(parts);
}

}  // namespace sluice::offload
