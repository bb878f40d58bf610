#pragma once
// Which recorded spans are the cause of an operation: a layer's gradients of their compression, a
// subgroup's update of its writes. What sets a stage off is said in core/runtime/stage.h; here it
// is looked up by subgroup and by layer.
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
  };
  using ByStage = std::array<Known, kStageCount>;

  void add(const std::vector<ByStage>& known, std::int32_t key, Stage stage, TimeNs by_ns);
  void add(const Known& known, TimeNs by_ns);

  std::vector<ByStage> by_subgroup_;
  std::vector<ByStage> by_layer_;
  ByStage latest_{};

  std::array<record::SpanRef, kTriggersMax> causes_{};
  std::size_t cause_count_ = 0;
};

}  // namespace sluice::runtime
