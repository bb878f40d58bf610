#pragma once
// The decision of a step about the gradients that have gone down, once they are all known, and
// before.
//
// Thread contract: plain data.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/state_format.h"
#include "core/optimizer/update_rule.h"

namespace sluice::offload {

// The scalars of the subgroups of one group: those below `end` that are in no group before it.
struct GroupScalars {
  std::int32_t end = 0;
  optimizer::UpdateScalars scalars;
  bool operator==(const GroupScalars&) const = default;
};

struct StepDecision {
  bool apply = true;  // false: overflow, nothing is updated
  optimizer::UpdateScalars scalars;
  // Upwards, over all subgroups; empty: all are updated by `scalars`.
  std::vector<GroupScalars> groups = {};

  const optimizer::UpdateScalars& of(SubgroupId subgroup) const {
    for (const GroupScalars& group : groups) {
      if (index_of(subgroup) < group.end) return group.scalars;
    }
    return scalars;
  }
  bool operator==(const StepDecision&) const = default;
};

// The values by which a step with overlap=local updates its subgroups, but for their norms
// (core/offload/subgroup_clip.h). A loss scale that may overflow needs one decision for all, so
// settings refuse fp16 with overlap=local.
struct ClipRule {
  optimizer::UpdateOptions update;  // with the step's learning rate
  std::int64_t optimizer_step = 1;  // from 1
  double loss_scale = 1;            // that the gradients contain as backward gives them,
  double remaining_loss_scale = 1;  // and as the update reads them
  double max_grad_norm = 0;         // 0: no clipping
};

// What is known of a step's update before its decision, and the values by which it may be done.
struct UpdateAhead {
  std::optional<StepDecision> expected = {};  // overlap=exact
  std::optional<ClipRule> clip = {};          // overlap=local
  CodeRounding rounding = {};                 // of the step's state, whatever the decision is
};

}  // namespace sluice::offload
