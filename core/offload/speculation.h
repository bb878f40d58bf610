#pragma once
// The part of a step's update that happens before its decision. With overlap=exact the decision
// needs the norm of all gradients, but nearly always it is the one that is expected: apply, and
// clip nothing. So a subgroup is updated by that as soon as its own gradients are final, while
// backward computes the layers below it, and its new version goes to the slot that is not
// committed. If the decision is another one, what was done is *refuted*: the subgroup is updated
// once more from the version that is still whole, or, where the step is skipped, its
// parameters are read back. Only a step right after a commit speculates: later ones up to the next
// commit update their versions in place (state_versions.h).
//
// A gradient that is replaced, by its sum with that of a further micro-batch, was not final: the
// step is *halted*. Nothing more is updated before the decision, and that refutes what was.
//
// With overlap=local a subgroup is clipped by its own norm (subgroup_clip.h), so what is done ahead
// is *certain*: nothing is refuted, and every step may do it.
//
// Thread contract: the schedule's thread.

#include <deque>
#include <optional>

#include "base/id_vector.h"
#include "base/ids.h"
#include "core/offload/step_decision.h"
#include "core/runtime/sync.h"

namespace sluice::offload {

class Speculation {
 public:
  // `chunk_counts`: how many chunks each subgroup's gradient goes down in.
  Speculation(runtime::Runtime& runtime, const IdVector<SubgroupId, std::int32_t>& chunk_counts);

  // For a step that is to come; without `expected` every subgroup waits for the decision.
  void begin(const std::optional<StepDecision>& expected);
  // Each subgroup has scalars of its own, whatever the others' gradients are.
  void begin_certain();
  bool is_on() const { return is_certain_ || expected_.has_value(); }
  const StepDecision& expected() const { return *expected_; }

  // Gradients that are down will be replaced. Not with overlap=local.
  void halt();
  bool is_halted() const { return is_halted_; }

  // One more chunk of the subgroup's gradient waits for its update. Whether that was the last one.
  bool on_chunk_down(SubgroupId subgroup) { return --of_[subgroup].chunks_to_come == 0; }
  void on_chunk_again(SubgroupId subgroup) { ++of_[subgroup].chunks_to_come; }
  // The subgroup may be updated.
  void set_final(SubgroupId subgroup) {
    is_final_[static_cast<std::size_t>(index_of(subgroup))].set();
  }
  // Waits for that, or for the decision; of a step that is halted for the latter alone
  // (SubgroupUpdate::gradients). Then nobody reads the subgroup's parameters any
  // more in this step: backward of all its layers has ended.
  runtime::Event::Awaiter gradients_final(SubgroupId subgroup);

  // The pipeline has taken the subgroup on before the decision.
  void on_taken(SubgroupId subgroup) { of_[subgroup].is_taken = true; }
  // Its kernel is given what is expected.
  void on_ahead(SubgroupId subgroup);
  // Its parameters are up; to be told of once there is a decision.
  void on_parameters_up(SubgroupId subgroup) { of_[subgroup].is_up = true; }
  bool is_up(SubgroupId subgroup) const { return of_[subgroup].is_up; }
  // After the decision: whether the pipeline still has the subgroup to update.
  bool is_left(SubgroupId subgroup) const {
    return !of_[subgroup].is_taken || is_refuted(subgroup);
  }

  // The gradients are all known. A decision to skip refutes, too; none does what was certain.
  void decide(const StepDecision& decision);
  // Whether it was updated by what turned out not to be the decision.
  bool is_refuted(SubgroupId subgroup) const { return is_wrong_ && of_[subgroup].is_ahead; }
  // It is about to be updated once more.
  void on_again(SubgroupId subgroup) { of_[subgroup].is_ahead = false; }

  // Subgroups updated before the decision, and those of them that it refuted.
  std::int32_t ahead_count() const { return ahead_count_; }
  std::int32_t refuted_count() const { return is_wrong_ ? ahead_count_ : 0; }

 private:
  struct Subgroup {
    std::int32_t chunks_to_come = 0;
    bool is_taken = false;
    bool is_ahead = false;
    bool is_up = false;
  };

  IdVector<SubgroupId, std::int32_t> chunk_counts_;
  std::optional<StepDecision> expected_;
  bool is_certain_ = false;
  bool is_halted_ = false;
  IdVector<SubgroupId, Subgroup> of_;
  std::deque<runtime::Event> is_final_;  // by subgroup
  std::int32_t ahead_count_ = 0;
  bool is_wrong_ = false;
};

}  // namespace sluice::offload
