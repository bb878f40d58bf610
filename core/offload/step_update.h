#pragma once
// All state of one step's update: its gradients' checks, the decision, the next version, who waits
// for what. Two alternate, because with pipeline=nbuffer a step begins while the
// one before it is still being updated; each knows the one before it and nothing else of it.
//
// The events of a step, in order:
//   started     the step before has ended, and is committed if it was to be: the next version's
//               slots are taken
//   decided     the gradients are on the drives, and `decision` says what to do with them
//   unread.none every subgroup's state and gradient are read, for good: the next step's reads are
//               not in their way
//
// Thread contract: the schedule's thread, but for clip, gradient_checks and next_checksums,
// whose elements workers write while the operation that writes them is awaited.

#include <optional>
#include <vector>

#include "base/id_vector.h"
#include "base/ids.h"
#include "core/csd/update_task.h"
#include "core/offload/speculation.h"
#include "core/offload/subgroup_clip.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

// What a step has left to read.
struct Unread {
  explicit Unread(runtime::Runtime& runtime) : none(runtime) {}

  std::int32_t count = 0;  // subgroups; those that are updated once more count again
  runtime::Event none;
};

struct StepUpdate {
  // `check_counts`: how many chunks each subgroup's gradient goes down in.
  StepUpdate(runtime::Runtime& runtime, const IdVector<SubgroupId, std::int32_t>& check_counts);

  // For a step that is to come. The one that had this object has ended.
  void begin(std::int32_t new_step, bool is_to_commit, const UpdateAhead& ahead);
  // One more chunk of the subgroup's gradient waits for its update.
  void on_chunk_down(SubgroupId subgroup);
  // A chunk that is down will come once more; nobody updates before the decision, or no longer
  // (Speculation::halt).
  void on_chunk_again(SubgroupId subgroup);
  // The gradients are known: wakes who waits for that.
  void decide(const StepDecision& made);
  // State and gradient of one more subgroup are read for its update.
  void on_read();
  bool is_skipped() const { return decided.is_set() && !decision.apply; }
  // The scalars for a subgroup's kernel now: with overlap=local its own scalars, else the decision,
  // or what is expected.
  optimizer::UpdateScalars scalars(SubgroupId subgroup) const;

  StepUpdate* before = nullptr;  // the other one, whose step was the one before
  std::int32_t step = 0;

  // The checks of the gradients as they went down (step_gradients.h).
  IdVector<SubgroupId, std::vector<csd::GradientChunkCheck>> gradient_checks;

  // The decision.
  runtime::Event decided;
  StepDecision decision;
  Speculation speculation;           // its events are those of the gradients
  std::optional<SubgroupClip> clip;  // overlap=local

  // The next version.
  bool commits = true;    // it becomes durable when the step ends
  CodeRounding rounding;  // of compact state
  runtime::TaskGroup starts;
  runtime::Event started;
  IdVector<SubgroupId, state::SlotId> next_slot;
  IdVector<SubgroupId, csd::UpdatedChecksums> next_checksums;
  Unread unread;
  runtime::TaskGroup tasks;  // of the pipeline
};

}  // namespace sluice::offload
