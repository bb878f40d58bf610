// The update rules against torch's own over steps of random gradients: the optimizers of the C++
// API, and for AdamW the fused kernel too.
//
// "Within 1e-6 relative" is relative to the weight or to the way it has come, whichever is larger:
// each step rounds at that size, so a weight that has crossed zero keeps the rounding errors of the
// path. torch's two implementations differ from one another by as much.

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "core/optimizer/update_rule.h"

namespace sluice::optimizer {
namespace {

constexpr std::int64_t kCount = 1 << 16;
constexpr int kSteps = 20;
const UpdateOptions kAdamW{.lr = 1e-3, .weight_decay = 0.1};
const UpdateOptions kSgd{.rule = RuleKind::sgd, .lr = 1e-2, .momentum = 0.9, .weight_decay = 0.1};
const UpdateOptions kAdaGrad{
    .rule = RuleKind::adagrad, .lr = 1e-2, .eps = 1e-10, .weight_decay = 0.1};

std::vector<float> normal_floats(float deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(kCount);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> gradient_of(int step) {
  return normal_floats(1e-2f, 100 + static_cast<std::uint32_t>(step));
}

at::Tensor tensor_of(std::vector<float>& values) {
  return at::from_blob(values.data(), {kCount}, at::kFloat);
}

std::vector<float> floats_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return std::vector<float>(flat.data_ptr<float>(), flat.data_ptr<float>() + kCount);
}

struct Training {
  std::vector<float> weights;
  std::vector<double> path;  // of each weight: the sum of its changes
};

Training train_ours(const UpdateOptions& options, const std::vector<float>& start) {
  Training training{.weights = start, .path = std::vector<double>(kCount)};
  std::vector<float> second(kCount), third(kCount);
  for (int step = 1; step <= kSteps; ++step) {
    const std::vector<float> gradient = gradient_of(step);
    const std::vector<float> before = training.weights;
    update(update_scalars(options, step, 1.0),
           {.element_count = kCount,
            .state = {training.weights.data(), second.data(), third.data()},
            .gradient = gradient.data()});
    for (std::size_t i = 0; i < before.size(); ++i)
      training.path[i] += std::abs(static_cast<double>(training.weights[i]) - before[i]);
  }
  return training;
}

std::vector<float> train_fused(const std::vector<float>& start) {
  std::vector<float> copy = start;
  const at::Tensor weights = tensor_of(copy);
  const at::Tensor exp_avg = at::zeros_like(weights);
  const at::Tensor exp_avg_sq = at::zeros_like(weights);
  for (int step = 1; step <= kSteps; ++step) {
    std::vector<float> gradient = gradient_of(step);
    const at::Tensor steps = at::scalar_tensor(step, at::kFloat);
    at::_fused_adamw_({weights}, {tensor_of(gradient)}, {exp_avg}, {exp_avg_sq}, {}, {steps},
                      kAdamW.lr, kAdamW.beta1, kAdamW.beta2, kAdamW.weight_decay, kAdamW.eps,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
  return floats_of(weights);
}

// With an optimizer of the C++ API.
template <class Optimizer, class Options>
std::vector<float> train_eager(const std::vector<float>& start, const Options& options) {
  std::vector<float> copy = start;
  at::Tensor weights = tensor_of(copy).clone().requires_grad_(true);
  Optimizer optimizer({weights}, options);
  for (int step = 1; step <= kSteps; ++step) {
    std::vector<float> gradient = gradient_of(step);
    weights.mutable_grad() = tensor_of(gradient).clone();
    optimizer.step();
  }
  return floats_of(weights.detach());
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b,
                          const std::vector<double>& path) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double size = std::max(static_cast<double>(std::abs(a[i])), path[i]);
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]) / size);
  }
  return largest;
}

TEST_CASE("after 20 steps the master weights are within 1e-6 of torch's own AdamW") {
  const std::vector<float> start = normal_floats(0.02f, 1);
  const Training ours = train_ours(kAdamW, start);
  const std::vector<float> fused = train_fused(start);
  const std::vector<float> eager =
      train_eager<torch::optim::AdamW>(start, torch::optim::AdamWOptions(kAdamW.lr)
                                                  .betas({kAdamW.beta1, kAdamW.beta2})
                                                  .eps(kAdamW.eps)
                                                  .weight_decay(kAdamW.weight_decay));
  REQUIRE(ours.weights != start);
  const double to_fused = largest_difference(ours.weights, fused, ours.path);
  const double to_eager = largest_difference(ours.weights, eager, ours.path);
  std::printf(
      "largest relative difference: to the fused kernel %.2g, to torch::optim::AdamW %.2g,"
      " between the two %.2g\n",
      to_fused, to_eager, largest_difference(fused, eager, ours.path));
  CHECK(to_fused < 1e-6);
  CHECK(to_eager < 1e-6);
}

void check_as_torch(const Training& ours, const std::vector<float>& start,
                    const std::vector<float>& torchs, const char* name) {
  REQUIRE(ours.weights != start);
  const double difference = largest_difference(ours.weights, torchs, ours.path);
  std::printf("largest relative difference to %s %.2g\n", name, difference);
  CHECK(difference < 1e-6);
}

TEST_CASE("after 20 steps the master weights are within 1e-6 of torch's own SGD with momentum") {
  const std::vector<float> start = normal_floats(0.02f, 1);
  const Training ours = train_ours(kSgd, start);
  const std::vector<float> eager =
      train_eager<torch::optim::SGD>(start, torch::optim::SGDOptions(kSgd.lr)
                                                .momentum(kSgd.momentum)
                                                .dampening(0)
                                                .nesterov(false)
                                                .weight_decay(kSgd.weight_decay));
  check_as_torch(ours, start, eager, "torch::optim::SGD");
}

TEST_CASE("after 20 steps the master weights are within 1e-6 of torch's own Adagrad") {
  const std::vector<float> start = normal_floats(0.02f, 1);
  const Training ours = train_ours(kAdaGrad, start);
  const std::vector<float> eager =
      train_eager<torch::optim::Adagrad>(start, torch::optim::AdagradOptions(kAdaGrad.lr)
                                                    .lr_decay(0)
                                                    .initial_accumulator_value(0)
                                                    .eps(kAdaGrad.eps)
                                                    .weight_decay(kAdaGrad.weight_decay));
  check_as_torch(ours, start, eager, "torch::optim::Adagrad");
}

}  // namespace
}  // namespace sluice::optimizer
