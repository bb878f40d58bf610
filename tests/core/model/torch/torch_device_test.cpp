// The compute device in libtorch on the software accelerator: the processor's bits, whatever the
// streams do; memory under a cap; failures by name.

#include <catch2/catch.hpp>

#include "tests/core/model/torch/device_step.h"

namespace sluice::model {
namespace {

// 97 tokens at 60 places: some stand at several.
const ModelShape kSmall{"small", 3, 48, 3, 24, 97};

ModelOptions options_of(int micro_step_count, Activations activations, Float16Kind compute) {
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
  const Float16Kind compute = GENERATE(Float16Kind::bf16, Float16Kind::fp16);
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

TEST_CASE("delays of streams and copies change nothing") {
  const ModelOptions options = options_of(1, Activations::keep, Float16Kind::bf16);
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

TEST_CASE("a cap of what the plan says is enough, and is held") {
  const Activations activations = GENERATE(Activations::keep, Activations::recompute);
  const ModelOptions options = options_of(2, activations, Float16Kind::bf16);
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
  const ModelOptions options = options_of(1, Activations::keep, Float16Kind::bf16);
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
