#pragma once
// Which recorded spans are the cause of an operation: a layer's gradients of their compression, a
// subgroup's update of its writes. What sets a stage off is said in core/stages/stage.h; here it
// is looked up by subgroup and by layer. What a layer does sets off what the same step does with
// it; a subgroup's update may be set off by the step before.
//
// Thread contract: owner thread only. Allocates only for subgroups and layers that it has not seen.

#include <array>
#include <span>
#include <vector>

#include "core/runtime/operation.h"
#include "profiler/record/record.h"

namespace sluice::runtime {

class FlowCauses {
 public:
  // Spans that caused this operation, of those remembered: what ended before it began. Valid until
  // the next call.
  std::span<const record::SpanRef> causes_of(const OperationState& state);
  // The operation's own span, which others may have as a cause.
  void remember(const OperationState& state, record::SpanRef span);

 private:
  struct Known {
    record::SpanRef span = record::kNoSpan;
    TimeNs end_ns = 0;
    std::int32_t step = -1;
  };
  using ByStage = std::array<Known, stages::kStageCount>;

  struct Remembered {
    OperationLabel label;
    Known known;
  };
  // Several operations of a stage and a subgroup may end while what the first of them set off is
  // under way: chunks of a gradient are staged while the first goes down. So many are looked back.
  static constexpr std::size_t kLookedBack = 64;

  const Known* latest(const stages::StageTrigger& trigger, const OperationLabel& label) const;
  // A layer's is of the same step.
  static bool may_cause(const stages::StageTrigger& trigger, const Known& known,
                        const OperationState& state);
  // The last that ended by then; null: none of those that are looked back to.
  const Known* earlier(const stages::StageTrigger& trigger, const OperationLabel& label,
                       TimeNs by_ns) const;

  std::vector<ByStage> by_subgroup_;
  std::vector<ByStage> by_layer_;
  ByStage latest_{};
  std::array<Remembered, kLookedBack> recent_{};
  std::size_t recent_count_ = 0;  // ever; the next one's place is this modulo the size

  std::array<record::SpanRef, stages::kTriggersMax> causes_{};
  std::size_t cause_count_ = 0;
};

}  // namespace sluice::runtime
