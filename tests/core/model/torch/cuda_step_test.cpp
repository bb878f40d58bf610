// Steps on a device whose kernels and roundings are its own, beside those of the processor: near,
// since they cannot be equal. The device is a GPU, or what SLUICE_TEST_DEVICE names.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/float16.h"
#include "tests/core/model/torch/device_gradients.h"
#include "tests/skip.h"

namespace sluice::model {
namespace {

// bf16 keeps 8 bits, and a block has a dozen roundings one after the other: 2^-8 * sqrt(12) is
// 1.4 %. A wrong step is off by about 100 %.
constexpr double kNearGradient = 0.05;
constexpr double kNearLoss = 0.01;

const ModelShape kShape{"small", 3, 64, 4, 32, 256};

std::string test_device() {
  const char* const chosen = ::getenv("SLUICE_TEST_DEVICE");
  return chosen == nullptr ? "cuda" : chosen;
}

// Opened once in a process; null where there is none.
const ModelFactory* device_factory() {
  static const Result<ModelFactory> factory = model_factory(test_device(), 0, 2);
  if (factory.ok()) return &*factory;
  // Asked for by name and absent is a failure.
  INFO(factory.error().message());
  REQUIRE(::getenv("SLUICE_TEST_DEVICE") == nullptr);
  skip_test(factory.error().message());
  return nullptr;
}

double value_at(const StepNumbers& numbers, const ModelOptions& options, std::int64_t i) {
  if (options.micro_step_count > 1) {
    float value = 0;
    std::memcpy(&value, numbers.gradients.data() + i * 4, 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, numbers.gradients.data() + i * 2, 2);
  return float_from_float16(float16_kind(options.compute), bits);
}

// The norm of the difference beside the norm, for the layer whose gradients differ most.
double worst_difference(const StepNumbers& found, const StepNumbers& expected,
                        const ModelOptions& options) {
  double worst = 0;
  for (const LayerRange& layer : kShape.flat_layout().layers) {
    double difference = 0;
    double norm = 0;
    for (std::int64_t i = layer.first; i < layer.first + layer.count; ++i) {
      const double wanted = value_at(expected, options, i);
      const double off = value_at(found, options, i) - wanted;
      difference += off * off;
      norm += wanted * wanted;
    }
    REQUIRE(norm > 0);
    worst = std::max(worst, std::sqrt(difference / norm));
  }
  return worst;
}

// Whatever the gradients' own roundings are.
TEST_CASE("gradient work on the device has the host's bits") {
  const ModelFactory* const factory = device_factory();
  if (factory == nullptr) return;
  const ModelOptions options{.batch = 4,
                             .sequence = 32,
                             .micro_step_count = GENERATE(1, 3),
                             .activations = Activations::keep,
                             .compute = ParameterKind::bf16,
                             .thread_count = 2};
  std::vector<Batch> micro_batches;
  for (int m = 0; m < options.micro_step_count; ++m)
    micro_batches.emplace_back(4, 32, 256, 7 + static_cast<std::uint64_t>(m));
  DeviceStep step(kShape, options, *factory, 4);
  const Result<StepNumbers> numbers = step.run(micro_batches, 2.0);
  REQUIRE(numbers.ok());
  check_gradient_work(step, *numbers, options);
}

TEST_CASE("a step on the device is near one in host memory") {
  const ModelFactory* const factory = device_factory();
  if (factory == nullptr) return;
  const int micro_steps = GENERATE(1, 3);
  const Activations activations = GENERATE(Activations::keep, Activations::recompute);
  const ModelOptions options{.batch = 4,
                             .sequence = 32,
                             .micro_step_count = micro_steps,
                             .activations = activations,
                             .compute = ParameterKind::bf16,
                             .thread_count = 2};
  std::vector<Batch> micro_batches;
  std::vector<Batch> others;
  for (int m = 0; m < micro_steps; ++m) {
    micro_batches.emplace_back(4, 32, 256, 7 + static_cast<std::uint64_t>(m));
    others.emplace_back(4, 32, 256, 70 + static_cast<std::uint64_t>(m));
  }
  const StepNumbers expected = step_in_host_memory(kShape, options, micro_batches, 2.0, 4);
  DeviceStep step(kShape, options, *factory, 4);
  const Result<StepNumbers> found = step.run(micro_batches, 2.0);
  INFO((found.ok() ? std::string() : found.error().message()));
  REQUIRE(found.ok());
  REQUIRE(found->losses.size() == expected.losses.size());
  for (std::size_t m = 0; m < expected.losses.size(); ++m)
    CHECK(found->losses[m] == Approx(expected.losses[m]).epsilon(kNearLoss));
  CHECK(worst_difference(*found, expected, options) < kNearGradient);
  // What the tolerance would find: the gradients of other tokens.
  const StepNumbers wrong = step_in_host_memory(kShape, options, others, 2.0, 4);
  CHECK(worst_difference(wrong, expected, options) > 4 * kNearGradient);
}

}  // namespace
}  // namespace sluice::model
