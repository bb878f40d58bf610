#include "core/offload/step_update.h"

namespace sluice::offload {

StepUpdate::StepUpdate(runtime::Runtime& runtime,
                       const IdVector<SubgroupId, std::int32_t>& check_counts)
    : decided(runtime),
      speculation(runtime, check_counts),
      starts(runtime),
      started(runtime),
      next_slot(check_counts.count()),
      next_checksums(check_counts.count()),
      unread(runtime),
      tasks(runtime) {
  for (const std::int32_t count : check_counts) {
    gradient_checks.emplace_back(static_cast<std::size_t>(count));
  }
  unread.none.set();  // no step has begun, so none is being read
}

void StepUpdate::begin(std::int32_t new_step, bool is_to_commit, const UpdateAhead& ahead) {
  step = new_step;
  commits = is_to_commit;
  rounding = ahead.rounding;
  decided.reset();
  started.reset();
  unread.count = next_slot.count();
  unread.none.reset();
  CHECK_EQ(clip.has_value(), ahead.clip.has_value());
  if (clip) {
    clip->begin(*ahead.clip);
    speculation.begin_certain();
  } else {
    // After a step without commit the version that is updated is where the next one goes.
    speculation.begin(before->commits ? ahead.expected : std::nullopt);
  }
}

// A gradient that is not finite updates nothing: the step fails once all gradients are known.
void StepUpdate::on_chunk_down(SubgroupId subgroup) {
  if (!speculation.on_chunk_down(subgroup)) return;
  if (!clip || clip->is_finite(subgroup)) speculation.set_final(subgroup);
}

void StepUpdate::on_chunk_again(SubgroupId subgroup) {
  CHECK(!speculation.is_on() || speculation.is_halted());
  speculation.on_chunk_again(subgroup);
}

optimizer::UpdateScalars StepUpdate::scalars(SubgroupId subgroup) const {
  if (clip) return clip->scalars(subgroup);
  return decided.is_set() ? decision.of(subgroup) : speculation.expected().of(subgroup);
}

void StepUpdate::decide(const StepDecision& made) {
  decision = made;
  speculation.decide(made);
  if (made.apply) unread.count += speculation.refuted_count();
  decided.set();
  if (unread.count == 0) unread.none.set();
}

void StepUpdate::on_read() {
  unread.count -= 1;
  if (unread.count == 0 && decided.is_set()) unread.none.set();
}

}  // namespace sluice::offload
