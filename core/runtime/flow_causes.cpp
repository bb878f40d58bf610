#include "core/runtime/flow_causes.h"

namespace sluice::runtime {
namespace {

// What of the same subgroup, or else of the same layer, comes before a stage. Where several are
// named, those that a run has (docs/offload.md draws the whole).
enum class Key : std::uint8_t { subgroup, layer, any };
struct Rule {
  Stage effect;
  Stage cause;
  Key key;
};
constexpr Rule kRules[] = {
    {Stage::forward, Stage::layer_in, Key::layer},
    {Stage::backward, Stage::layer_in, Key::layer},
    {Stage::gradient_out, Stage::backward, Key::layer},
    {Stage::gradient, Stage::backward, Key::layer},
    {Stage::gradient, Stage::gradient_out, Key::layer},
    {Stage::compress, Stage::gradient, Key::layer},
    {Stage::stage_gradient, Stage::gradient, Key::layer},
    {Stage::stage_gradient, Stage::compress, Key::any},
    {Stage::gradient_down, Stage::stage_gradient, Key::subgroup},
    {Stage::gradient_read, Stage::gradient_down, Key::subgroup},
    {Stage::update, Stage::gradient_read, Key::subgroup},
    {Stage::update, Stage::state_read, Key::subgroup},
    {Stage::state_write, Stage::update, Key::subgroup},
    {Stage::parameters_up, Stage::update, Key::subgroup},
    {Stage::parameters_in, Stage::parameters_up, Key::subgroup},
    {Stage::forward, Stage::parameters_in, Key::any},
    {Stage::forward, Stage::parameters_up, Key::any},
    {Stage::commit, Stage::state_write, Key::any},
};

constexpr bool at_most_causes() {
  for (const Rule& of : kRules) {
    std::size_t count = 0;
    for (const Rule& rule : kRules) count += rule.effect == of.effect ? 1 : 0;
    if (count > FlowCauses::kCausesMax) return false;
  }
  return true;
}
static_assert(at_most_causes());

}  // namespace

void FlowCauses::add(const Known& known, TimeNs by_ns) {
  if (known.span != record::kNoSpan && known.end_ns <= by_ns) {
    causes_[cause_count_++] = known.span;
  }
}

void FlowCauses::add(const std::vector<ByStage>& known, std::int32_t key, Stage stage,
                     TimeNs by_ns) {
  if (key < 0 || static_cast<std::size_t>(key) >= known.size()) return;
  add(known[static_cast<std::size_t>(key)][static_cast<std::size_t>(stage)], by_ns);
}

std::span<const record::SpanRef> FlowCauses::causes_of(const OperationState& state) {
  const OperationLabel& label = state.operation.label;
  cause_count_ = 0;
  for (const Rule& rule : kRules) {
    if (rule.effect != label.stage) continue;
    if (rule.key == Key::subgroup) {
      add(by_subgroup_, index_of(label.subgroup), rule.cause, state.start_ns);
    } else if (rule.key == Key::layer) {
      add(by_layer_, index_of(label.layer), rule.cause, state.start_ns);
    } else {
      add(latest_[static_cast<std::size_t>(rule.cause)], state.start_ns);
    }
  }
  return std::span(causes_).first(cause_count_);
}

void FlowCauses::remember(const OperationState& state, record::SpanRef span) {
  const OperationLabel& label = state.operation.label;
  const auto stage = static_cast<std::size_t>(label.stage);
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
