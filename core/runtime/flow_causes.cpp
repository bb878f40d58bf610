#include "core/runtime/flow_causes.h"

namespace sluice::runtime {
void FlowCauses::add(const Known& known, TimeNs by_ns) {
  if (known.span != record::kNoSpan && known.end_ns <= by_ns) {
    causes_[cause_count_++] = known.span;
  }
}

void FlowCauses::add(const std::vector<ByStage>& known, std::int32_t key, Stage stage,
                     TimeNs by_ns) {
  if (key < 0 || static_cast<std::size_t>(key) >= known.size()) return;
  add(known[static_cast<std::size_t>(key)][index_of(stage)], by_ns);
}

std::span<const record::SpanRef> FlowCauses::causes_of(const OperationState& state) {
  const OperationLabel& label = state.operation.label;
  cause_count_ = 0;
  for (const StageTrigger& trigger : stage_info(label.stage).set_off_by) {
    if (trigger.stage == Stage::count_) break;
    switch (trigger.of) {
      case SetOffBy::subgroup:
        add(by_subgroup_, index_of(label.subgroup), trigger.stage, state.start_ns);
        break;
      case SetOffBy::layer:
        add(by_layer_, index_of(label.layer), trigger.stage, state.start_ns);
        break;
      case SetOffBy::any:
        add(latest_[index_of(trigger.stage)], state.start_ns);
        break;
    }
  }
  return std::span(causes_).first(cause_count_);
}

void FlowCauses::remember(const OperationState& state, record::SpanRef span) {
  const OperationLabel& label = state.operation.label;
  const std::size_t stage = index_of(label.stage);
  const Known known{span, state.end_ns};
  const auto put = [&](std::vector<ByStage>& by_key, std::int32_t key) {
    if (key < 0) return;
    if (by_key.size() <= static_cast<std::size_t>(key)) {
      by_key.resize(static_cast<std::size_t>(key) + 1);
    }
    by_key[static_cast<std::size_t>(key)][stage] = known;
  };
  put(by_subgroup_, index_of(label.subgroup));
  put(by_layer_, index_of(label.layer));
  latest_[stage] = known;
}

}  // namespace sluice::runtime
