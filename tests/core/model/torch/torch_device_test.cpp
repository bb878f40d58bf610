// The compute device in libtorch on the software accelerator: the processor's bits, whatever the
// streams do; memory under a cap; failures by name.

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "tests/core/model/torch/device_gradients.h"

namespace sluice::model {
namespace {

// 97 tokens at 60 places: some stand at several.
const ModelShape kSmall{"small", 3, 48, 3, 24, 97};

ModelOptions options_of(int micro_step_count, Activations activations, ParameterKind compute) {
  return {.batch = 3,
          .sequence = 20,
          .micro_step_count = micro_step_count,
          .activations = activations,
          .compute = compute,
          .thread_count = 2};
}

std::vector<Batch> batches(int count, std::uint64_t seed) {
  std::vector<Batch> all;
  for (int m = 0; m < count; ++m) all.emplace_back(3, 20, 97, seed + static_cast<std::uint64_t>(m));
  return all;
}

StepNumbers require_step(DeviceStep& step, const std::vector<Batch>& micro_batches) {
  const Result<StepNumbers> numbers = step.run(micro_batches, 2.0);
  INFO((numbers.ok() ? std::string() : numbers.error().message()));
  REQUIRE(numbers.ok());
  return *numbers;
}

TEST_CASE("a step on the device has the bits of one in host memory") {
  const int micro_steps = GENERATE(1, 3);
  const Activations activations = GENERATE(Activations::keep, Activations::recompute);
  const ParameterKind compute =
      GENERATE(ParameterKind::bf16, ParameterKind::fp16, ParameterKind::fp32);
  const ModelOptions options = options_of(micro_steps, activations, compute);
  const ModelFactory factory = soft_factory("seed=3;delay_us=100");
  DeviceStep step(kSmall, options, factory, 4);
  for (const std::uint64_t seed : {7U, 20U}) {
    const auto micro_batches = batches(micro_steps, seed);
    const StepNumbers expected = step_in_host_memory(kSmall, options, micro_batches, 2.0, 4);
    const StepNumbers found = require_step(step, micro_batches);
    CHECK(found.losses == expected.losses);
    CHECK(found.gradients == expected.gradients);
  }
  step.give_up_device();
  CHECK(kept_error().empty());
}

TEST_CASE("gradients are worked on where they are, with the host's bits") {
  const ModelOptions options =
      options_of(GENERATE(1, 3), Activations::keep,
                 GENERATE(ParameterKind::bf16, ParameterKind::fp16, ParameterKind::fp32));
  const ModelFactory factory = soft_factory("seed=6;delay_us=100");
  DeviceStep step(kSmall, options, factory, 4);
  const StepNumbers numbers = require_step(step, batches(options.micro_step_count, 7));
  check_gradient_work(step, numbers, options);
  step.give_up_device();
  CHECK(kept_error().empty());
}

TEST_CASE("what layers keep leaves the device and comes back, and nothing changes") {
  const int micro_steps = GENERATE(1, 3);
  const Activations activations = GENERATE(Activations::offload, Activations::offload_inputs);
  const ModelOptions options = options_of(micro_steps, activations, ParameterKind::bf16);
  const ModelFactory factory = soft_factory("seed=8;delay_us=200;in_rate=5e7;out_rate=5e7");
  DeviceStep step(kSmall, options, factory, 4);
  step.move_blocks();
  for (const std::uint64_t seed : {7U, 20U}) {
    const auto micro_batches = batches(micro_steps, seed);
    const StepNumbers expected =
        step_in_host_memory(kSmall, options_of(micro_steps, Activations::keep, ParameterKind::bf16),
                            micro_batches, 2.0, 4);
    CHECK(require_step(step, micro_batches) == expected);
  }
  CHECK(step.moved_bytes() > 0);
  step.give_up_device();
  CHECK(kept_error().empty());
}

TEST_CASE("delays of streams and copies change nothing") {
  const ModelOptions options = options_of(1, Activations::keep, ParameterKind::bf16);
  const auto micro_batches = batches(1, 5);
  const StepNumbers expected = step_in_host_memory(kSmall, options, micro_batches, 2.0, 4);
  for (int seed = 0; seed < 10; ++seed) {
    const ModelFactory factory =
        soft_factory(fmt::format("seed={};delay_us=400;in_rate=5e7;out_rate=5e7", seed));
    DeviceStep step(kSmall, options, factory, 4);
    CHECK(require_step(step, micro_batches) == expected);
  }
  CHECK(kept_error().empty());
}

// Who opened regions of which layers, in order, and whether they ended where they began.
class HeardRegions {
 public:
  LaunchRegion region() {
    return [this](LayerId layer) -> std::shared_ptr<void> {
      const auto thread = std::this_thread::get_id();
      const std::lock_guard lock(mutex_);
      layers_[thread].push_back(index_of(layer));
      ++open_count_;
      return {nullptr, [this, thread](void*) {
                const std::lock_guard end(mutex_);
                --open_count_;
                if (std::this_thread::get_id() != thread) ++astray_count_;
              }};
    };
  }
  // Without those that repeat the one before.
  static std::vector<std::int32_t> changes(std::vector<std::int32_t> layers) {
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    return layers;
  }
  const std::map<std::thread::id, std::vector<std::int32_t>>& layers() const { return layers_; }
  int open_count() const { return open_count_; }
  int astray_count() const { return astray_count_; }

 private:
  std::mutex mutex_;
  std::map<std::thread::id, std::vector<std::int32_t>> layers_;
  int open_count_ = 0;
  int astray_count_ = 0;
};

TEST_CASE("each launch is in a region of its layer, on whichever thread it is launched") {
  const ModelOptions options = options_of(2, Activations::keep, ParameterKind::bf16);
  const ModelFactory factory = soft_factory("");
  HeardRegions heard;
  {
    DeviceStep step(kSmall, options, factory, 4);
    set_soft_region(heard.region());
    require_step(step, batches(2, 5));
  }
  set_soft_region({});
  CHECK(heard.open_count() == 0);
  CHECK(heard.astray_count() == 0);
  // The schedule's thread: this one. -1 is a batch, which is no layer's.
  const auto here = heard.layers().find(std::this_thread::get_id());
  REQUIRE(here != heard.layers().end());
  CHECK(HeardRegions::changes(here->second) ==
        std::vector<std::int32_t>{0, -1, 1, 2, 3, 4, 3, 4, 2, 3, 1, 2, 0, 1, 0});
  // One launches forward and backward, another one what autograd does for it.
  const std::vector<std::int32_t> both = {0, 1, 2, 3, 4, 3, 2, 1, 0};
  const std::vector<std::int32_t> downwards = {4, 3, 2, 1};  // the lowest needs no autograd
  REQUIRE(heard.layers().size() == 3);
  for (const auto& [thread, layers] : heard.layers()) {
    if (thread == here->first) continue;
    const std::vector<std::int32_t> changes = HeardRegions::changes(layers);
    INFO(Catch::Detail::stringify(changes));
    CHECK((changes == both || changes == downwards));
  }
}

TEST_CASE("a cap of what the plan says is enough, and is held") {
  const Activations activations = GENERATE(Activations::keep, Activations::recompute);
  const ModelOptions options = options_of(2, activations, ParameterKind::bf16);
  const ModelFactory factory = soft_factory("delay_us=50");
  std::int64_t planned_bytes = soft_used_bytes();
  for (const MemoryItem& item : factory.device_memory(kSmall, options))
    planned_bytes += item.size_bytes;
  soft_factory("delay_us=50", planned_bytes);
  DeviceStep step(kSmall, options, factory, 4);
  const auto micro_batches = batches(2, 5);
  CHECK(require_step(step, micro_batches) ==
        step_in_host_memory(kSmall, options, micro_batches, 2.0, 4));
  CHECK(step.device().memory_use().peak_bytes <= planned_bytes);
  CHECK(step.device().memory_use().peak_bytes > 0);
}

TEST_CASE("what fails on the device is told by name, and nothing hangs") {
  struct Failing {
    const char* settings;
    const char* says;
  };
  const Failing failing =
      GENERATE(Failing{"fault=oom@60", "memory"}, Failing{"fault=copy@5", "copy 5"},
               Failing{"fault=lost@90", "lost"});
  INFO(failing.settings);
  const ModelOptions options = options_of(1, Activations::keep, ParameterKind::bf16);
  const ModelFactory factory = soft_factory("");
  DeviceStep step(kSmall, options, factory, 4);
  soft_factory(failing.settings);
  const Result<StepNumbers> numbers = step.run(batches(1, 5), 1.0);
  REQUIRE_FALSE(numbers.ok());
  CHECK_THAT(numbers.error().message(), Catch::Contains(failing.says));
  step.give_up_device();
  soft_factory("");
}

}  // namespace
}  // namespace sluice::model
