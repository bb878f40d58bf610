// What is said to have set an operation off.

#include "core/runtime/flow_causes.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::runtime;
using namespace sluice::stages;

namespace {

OperationState operation(Stage stage, int subgroup, TimeNs start_ns, TimeNs end_ns) {
  OperationState state;
  state.operation.label.stage = stage;
  state.operation.label.subgroup = SubgroupId{subgroup};
  state.submit_ns = state.start_ns = start_ns;
  state.end_ns = end_ns;
  return state;
}

// The only cause; kNoSpan: there is none, or there are several.
record::SpanRef cause_of(FlowCauses& causes, const OperationState& state) {
  const auto found = causes.causes_of(state);
  return found.size() == 1 ? found.front() : record::kNoSpan;
}

}  // namespace

TEST_CASE("a chunk goes down because of its own staging, also when the next is staged meanwhile") {
  FlowCauses causes;
  const OperationState first = operation(Stage::stage_gradient, 3, 0, 10);
  const OperationState second = operation(Stage::stage_gradient, 3, 10, 20);
  const OperationState third = operation(Stage::stage_gradient, 3, 20, 30);
  const OperationState other = operation(Stage::stage_gradient, 4, 2, 9);
  causes.remember(first, record::span_ref(0, 1));
  causes.remember(other, record::span_ref(0, 2));
  causes.remember(second, record::span_ref(0, 3));
  causes.remember(third, record::span_ref(0, 4));
  // These end, and are asked about, when all three are staged.
  CHECK(cause_of(causes, operation(Stage::gradient_down, 3, 10, 40)) == record::span_ref(0, 1));
  CHECK(cause_of(causes, operation(Stage::gradient_down, 3, 20, 50)) == record::span_ref(0, 3));
  CHECK(cause_of(causes, operation(Stage::gradient_down, 3, 30, 60)) == record::span_ref(0, 4));
  CHECK(cause_of(causes, operation(Stage::gradient_down, 4, 30, 60)) == record::span_ref(0, 2));
}

TEST_CASE("what begins before all that could set it off has no cause") {
  FlowCauses causes;
  CHECK(causes.causes_of(operation(Stage::gradient_down, 3, 5, 40)).empty());
  causes.remember(operation(Stage::stage_gradient, 3, 0, 10), record::span_ref(0, 1));
  CHECK(causes.causes_of(operation(Stage::gradient_down, 3, 5, 40)).empty());
  CHECK(causes.causes_of(operation(Stage::gradient_down, 2, 15, 40)).empty());
  CHECK(causes.causes_of(operation(Stage::state_read, 3, 15, 40)).empty());
}

TEST_CASE("what a layer did in the step before sets nothing off in this one") {
  const auto of_layer = [](Stage stage, std::int32_t step, TimeNs start_ns, TimeNs end_ns) {
    OperationState state = operation(stage, -1, start_ns, end_ns);
    state.operation.label.layer = LayerId{2};
    state.step = step;
    return state;
  };
  FlowCauses causes;
  // Checked on the host once it has come, or where it was before it comes.
  causes.remember(of_layer(Stage::gradient, 4, 0, 10), record::span_ref(0, 1));
  causes.remember(of_layer(Stage::backward, 5, 20, 30), record::span_ref(0, 2));
  CHECK(cause_of(causes, of_layer(Stage::gradient_out, 5, 30, 40)) == record::span_ref(0, 2));
  causes.remember(of_layer(Stage::gradient, 5, 30, 35), record::span_ref(0, 3));
  CHECK(causes.causes_of(of_layer(Stage::gradient_out, 5, 35, 40)).size() == 2);
}
