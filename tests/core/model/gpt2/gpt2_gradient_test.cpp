// The gradients against plain_gpt2: fp32, one graph, other formulas. What differs is 16-bit
// rounding, so each tensor's error is measured against its own length.

#include <catch2/catch.hpp>
#include <cmath>

#include "base/float16.h"
#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/gpt2/plain_gpt2.h"
#include "tests/core/model/gradient_distance.h"

namespace sluice::model {
namespace {

constexpr double kWeightScale = 4;

TEST_CASE("bf16 gradients of every tensor are those of plain GPT-2") {
  Gpt2Run run(kSmall, {.batch = 3, .sequence = 20}, kWeightScale);
  const Batch batch(3, 20, kSmall.vocabulary, 5);
  const std::vector<float> gradient = run.step_16bit(batch, 1);
  const PlainResult plain = plain_gpt2(kSmall, Float16Kind::bf16, run.parameters, batch.view());
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(0.005));
  check_tensors(kSmall, gradient, plain.gradient, 0.03);
}

TEST_CASE("fp16 gradients under a loss scale are those of plain GPT-2") {
  const ModelShape shape{"very small", 1, 16, 2, 8, 31};
  Gpt2Run run(shape, {.batch = 2, .sequence = 8, .compute = ParameterKind::fp16}, kWeightScale);
  const Batch batch(2, 8, shape.vocabulary, 5);
  std::vector<float> gradient = run.step_16bit(batch, 1024);
  for (float& value : gradient) value /= 1024;
  const PlainResult plain = plain_gpt2(shape, Float16Kind::fp16, run.parameters, batch.view());
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(0.001));
  check_tensors(shape, gradient, plain.gradient, 0.005);
}

TEST_CASE("fp32 gradients of every tensor are those of plain GPT-2") {
  // Once with more tokens than the head takes at once.
  const std::int64_t sequence = GENERATE(8, 128);
  const ModelShape shape{"in fp32", 2, 32, 2, 128, 53};
  Gpt2Run run(shape, {.batch = 10, .sequence = sequence, .compute = ParameterKind::fp32},
              kWeightScale);
  const Batch batch(10, sequence, shape.vocabulary, 5);
  const std::vector<float> gradient = run.step({batch}, 1);
  const PlainResult plain = plain_gpt2(shape, run.parameters_fp32, batch.view());
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(1e-6));
  check_tensors(shape, gradient, plain.gradient, 1e-4);
}

TEST_CASE("more tokens than the head takes at once give the same gradients") {
  const ModelShape shape{"wide batch", 1, 16, 2, 128, 53};
  Gpt2Run run(shape, {.batch = 10, .sequence = 128}, kWeightScale);
  const Batch batch(10, 128, shape.vocabulary, 5);
  const PlainResult plain = plain_gpt2(shape, Float16Kind::bf16, run.parameters, batch.view());
  check_tensors(shape, run.step_16bit(batch, 1), plain.gradient, 0.03);
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(0.005));
}

TEST_CASE("the tied table's gradient holds both of its uses, in every row") {
  Gpt2Run run(kSmall, {.batch = 3, .sequence = 20}, kWeightScale);
  const Batch batch(3, 20, kSmall.vocabulary, 6);
  const std::vector<float> gradient = run.step_16bit(batch, 1);
  const PlainResult both = plain_gpt2(kSmall, Float16Kind::bf16, run.parameters, batch.view());
  const PlainResult head =
      plain_gpt2(kSmall, Float16Kind::bf16, run.parameters, batch.view(), TableUse::head_only);
  std::vector<int> occurrences(static_cast<std::size_t>(kSmall.vocabulary), 0);
  for (const std::int32_t token : batch.inputs) ++occurrences[static_cast<std::size_t>(token)];
  bool some_absent = false, some_repeated = false;
  for (std::int64_t token = 0; token < kSmall.vocabulary; ++token) {
    const auto row = [&](const std::vector<float>& all) {
      return std::span(all).subspan(token * kSmall.hidden, kSmall.hidden);
    };
    const int times = occurrences[static_cast<std::size_t>(token)];
    INFO("token " << token << " occurs " << times << " times");
    CHECK(distance(row(gradient), row(both.gradient)) < 0.05);
    // Where the embedding takes part it must show, or the line above would prove nothing.
    if (times > 0) CHECK(distance(row(head.gradient), row(both.gradient)) > 0.1);
    some_absent = some_absent || times == 0;
    some_repeated = some_repeated || times > 1;
  }
  CHECK(some_absent);
  CHECK(some_repeated);
}

TEST_CASE("positions beyond the batch's sequence have gradient zero") {
  Gpt2Run run(kSmall, {.batch = 2, .sequence = 20});
  const std::vector<float> gradient = run.step_16bit(Batch(2, 13, kSmall.vocabulary, 5), 1);
  const TensorInfo& positions = kSmall.flat_layout().tensors[1];
  REQUIRE(positions.name == "wpe.weight");
  for (std::int64_t i = 13 * kSmall.hidden; i < positions.count; ++i) {
    REQUIRE(gradient[positions.first + i] == 0.0f);
  }
}

TEST_CASE("two micro-batches add up to the sum of each") {
  const Batch first(2, 20, kSmall.vocabulary, 5), second(2, 20, kSmall.vocabulary, 6);
  Gpt2Run both(kSmall, {.batch = 2, .sequence = 20, .micro_step_count = 2}, kWeightScale);
  Gpt2Run one(kSmall, {.batch = 2, .sequence = 20}, kWeightScale);
  const std::vector<float> together = both.step({first, second}, 0.5);
  const std::vector<float> a = one.step({first}, 0.5);
  const std::vector<float> b = one.step({second}, 0.5);
  CHECK(both.model->loss(0) != both.model->loss(1));

  std::vector<float> sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.push_back(a[i] + b[i]);
  // The tied table adds its four parts in another order: fp32 rounding. All else is bit-equal.
  const std::int64_t table = kSmall.flat_layout().tensors[0].count;
  CHECK(distance(std::span(together).first(table), std::span(sum).first(table)) < 1e-6);
  CHECK(std::equal(together.begin() + table, together.end(), sum.begin() + table));
}

TEST_CASE("16-bit gradients are the fp32 ones, rounded") {
  const Batch batch(3, 20, kSmall.vocabulary, 5);
  Gpt2Run run(kSmall, {.batch = 3, .sequence = 20}, kWeightScale);
  const std::vector<float> wide = run.step({batch}, 1);
  const std::vector<float> narrow = run.step_16bit(batch, 1);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    REQUIRE(narrow[i] == float_from_bf16(bf16_from_float(wide[i])));
  }
}

}  // namespace
}  // namespace sluice::model
