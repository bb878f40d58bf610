// What autograd calls between its nodes, on the thread that launches a device's backward.

#include <ATen/record_function.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string_view>
#include <vector>

#include "tests/core/model/torch/device_step.h"

namespace sluice::model {
namespace {

const ModelShape kShape{"small", 3, 64, 4, 32, 256};

int& open_here() {
  thread_local int count = 0;
  return count;
}

std::shared_ptr<void> open_region(LayerId /*layer*/) {
  ++open_here();
  return {nullptr, [](void*) { --open_here(); }};
}

// Sums on any thread while this lives, and those of them that no region is around.
class HeardSums {
 public:
  HeardSums()
      : callback_(at::addGlobalCallback(
            at::RecordFunctionCallback(begin, end).scopes({at::RecordScope::FUNCTION}))) {
    count_ = outside_count_ = 0;
  }
  ~HeardSums() { at::removeCallback(callback_); }
  HeardSums(const HeardSums&) = delete;
  HeardSums& operator=(const HeardSums&) = delete;
  static int count() { return count_; }
  static int outside_count() { return outside_count_; }

 private:
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& /*call*/) {
    return nullptr;
  }
  // The region that a call opens is open until its end.
  static void end(const at::RecordFunction& call, at::ObserverContext* /*context*/) {
    if (std::string_view(call.name()) != "aten::sum") return;
    ++count_;
    if (open_here() == 0) ++outside_count_;
  }
  static inline std::atomic<int> count_{0};
  static inline std::atomic<int> outside_count_{0};
  at::CallbackHandle callback_;
};

// Autograd sums what was broadcast, a block's biases and norms, outside of any node.
TEST_CASE("what autograd does between nodes is in a region of the layer, too") {
  const ModelOptions options{.batch = 4,
                             .sequence = 32,
                             .micro_step_count = 1,
                             .activations = Activations::keep,
                             .compute = ParameterKind::bf16,
                             .thread_count = 2};
  const ModelFactory factory = soft_factory("");
  DeviceStep step(kShape, options, factory, 4);
  std::vector<Batch> batches;
  batches.emplace_back(4, 32, 256, 7);
  set_soft_region(open_region);
  {
    const HeardSums sums;
    CHECK(step.run(batches, 2.0).ok());
  }
  set_soft_region({});
  CHECK(HeardSums::count() >= 4 * 3);
  CHECK(HeardSums::outside_count() == 0);
}

}  // namespace
}  // namespace sluice::model
