#include "core/runtime/flow_causes.h"

#include <algorithm>

namespace sluice::runtime {
const FlowCauses::Known* FlowCauses::latest(const stages::StageTrigger& trigger,
                                            const OperationLabel& label) const {
  const auto of_key = [&](const std::vector<ByStage>& known, std::int32_t key) -> const Known* {
    if (key < 0 || static_cast<std::size_t>(key) >= known.size()) return nullptr;
    return &known[static_cast<std::size_t>(key)][index_of(trigger.stage)];
  };
  switch (trigger.of) {
    case stages::SetOffBy::subgroup:
      return of_key(by_subgroup_, index_of(label.subgroup));
    case stages::SetOffBy::layer:
      return of_key(by_layer_, index_of(label.layer));
    case stages::SetOffBy::any:
      return &latest_[index_of(trigger.stage)];
  }
  return nullptr;
}

const FlowCauses::Known* FlowCauses::earlier(const stages::StageTrigger& trigger,
                                             const OperationLabel& label, TimeNs by_ns) const {
  const std::size_t count = std::min(recent_count_, recent_.size());
  for (std::size_t back = 1; back <= count; ++back) {
    const Remembered& one = recent_[(recent_count_ - back) % recent_.size()];
    if (one.label.stage != trigger.stage || one.known.end_ns > by_ns) continue;
    if (trigger.of == stages::SetOffBy::subgroup && one.label.subgroup != label.subgroup) continue;
    if (trigger.of == stages::SetOffBy::layer && one.label.layer != label.layer) continue;
    return &one.known;
  }
  return nullptr;
}

bool FlowCauses::may_cause(const stages::StageTrigger& trigger, const Known& known,
                           const OperationState& state) {
  return known.span != record::kNoSpan &&
         (trigger.of != stages::SetOffBy::layer || known.step == state.step);
}

std::span<const record::SpanRef> FlowCauses::causes_of(const OperationState& state) {
  const OperationLabel& label = state.operation.label;
  cause_count_ = 0;
  for (const stages::StageTrigger& trigger : stages::stage_info(label.stage).set_off_by) {
    if (trigger.stage == stages::Stage::count_) break;
    const Known* known = latest(trigger, label);
    if (known == nullptr || !may_cause(trigger, *known, state)) continue;
    if (known->end_ns > state.start_ns) known = earlier(trigger, label, state.start_ns);
    if (known == nullptr || !may_cause(trigger, *known, state)) continue;
    causes_[cause_count_++] = known->span;
  }
  return std::span(causes_).first(cause_count_);
}

void FlowCauses::remember(const OperationState& state, record::SpanRef span) {
  const OperationLabel& label = state.operation.label;
  const std::size_t stage = index_of(label.stage);
  const Known known{span, state.end_ns, state.step};
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
  recent_[recent_count_++ % recent_.size()] = {label, known};
}

}  // namespace sluice::runtime
