#include "core/runtime/cost_model.h"

#include <catch2/catch.hpp>

#include "core/runtime/kernel_cost.h"
#include "tests/core/runtime/test_platform.h"

namespace sluice::runtime {
namespace {

// When kernels of a millisecond each, asked for at once on the host and in compute, end.
std::vector<TimeNs> ends_of_both(const platform::Platform& platform) {
  CostModel model(platform);
  OperationState host, compute;
  host.operation.cost.engine = platform.host_engine;
  compute.operation.cost.engine = platform.compute_engine;
  for (OperationState* state : {&host, &compute}) {
    state->operation.cost.engine_dur_ns = 1'000'000;
    model.start(state, 0, 0);
  }
  std::vector<CostModel::Completion> completed;
  model.advance(10'000'000, completed);
  std::vector<TimeNs> ends;
  for (const CostModel::Completion& completion : completed) ends.push_back(completion.at_ns);
  return ends;
}

}  // namespace

TEST_CASE("engines work at the same time unless they are one processor") {
  platform::Platform platform = test_platform();
  CHECK(ends_of_both(platform) == std::vector<TimeNs>{1'000'000, 1'000'000});
  platform.engines[static_cast<std::size_t>(platform::index_of(platform.compute_engine))]
      .processor = platform.host_engine;
  CHECK(ends_of_both(platform) == std::vector<TimeNs>{1'000'000, 2'000'000});
}

}  // namespace sluice::runtime
