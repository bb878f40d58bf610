// Llama: the plain one against transformers' numbers, and core/model/llama against the plain one.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/float16.h"
#include "tests/core/model/family_conformance.h"
#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/gradient_distance.h"
#include "tests/core/model/llama/fixture.h"
#include "tests/core/model/llama/plain_llama.h"

namespace sluice::model {
namespace {

// Four heads of queries on two of keys and values.
ModelShape shared_heads() {
  ModelShape shape{"llama", 3, 48, 4, 24, 97, Family::llama};
  shape.kv_heads = 2;
  shape.ffn = 80;
  return shape;
}

// With heads of their own width, their norms, biases, and one table.
ModelShape normed_heads() {
  ModelShape shape = shared_heads();
  shape.head_dim = 20;
  shape.qk_norm = shape.qkv_bias = shape.tied_tables = true;
  shape.rotary.theta = 1e6;
  shape.norm_eps = 1e-6;
  return shape;
}

// With all biases, stretched positions, and a window in all blocks but the first.
ModelShape windowed() {
  ModelShape shape = shared_heads();
  shape.qkv_bias = shape.o_bias = shape.mlp_bias = true;
  shape.rotary = {.theta = 1000, .scaling = RopeScaling::yarn, .factor = 4, .original_sequence = 8};
  shape.window = {.tokens = 7, .first_block = 1};
  return shape;
}

ModelShape of_fixture() {
  ModelShape shape{"fixture", 2, 16, 4, 64, 48, Family::llama};
  shape.kv_heads = 2;
  shape.ffn = 24;
  return shape;
}

// In fp32, targets without weight among them.
void check_ours(const Fixture& fixture, const ModelShape& shape) {
  Gpt2Run run(
      shape,
      {.batch = fixture.batch, .sequence = fixture.sequence, .compute = ParameterKind::fp32});
  std::ranges::copy(fixture.parameters, run.parameters_fp32.begin());
  Batch batch(fixture.batch, fixture.sequence, shape.vocabulary, 1);
  batch.inputs = fixture.inputs;
  batch.targets = fixture.targets;
  const std::vector<float> gradient = run.step({batch}, 1);
  CHECK(run.model->loss(0) == Approx(fixture.loss).epsilon(1e-5));
  check_tensors(shape, gradient, fixture.gradient, 1e-5);
}

void check_against_transformers(const std::string& name, const ModelShape& shape) {
  INFO(name);
  const Fixture fixture(name, shape);
  check_ours(fixture, shape);
  const PlainLlama plain =
      plain_llama(shape, fixture.parameters,
                  {fixture.batch, fixture.sequence, fixture.inputs, fixture.targets});
  CHECK(plain.loss == Approx(fixture.loss).epsilon(1e-5));
  check_tensors(shape, plain.gradient, fixture.gradient, 1e-5);
}

TEST_CASE("Llama has transformers' loss and gradients") {
  ModelShape llama = of_fixture();
  check_against_transformers("llama", llama);
  ModelShape qwen3 = of_fixture();
  qwen3.head_dim = 8;
  qwen3.qk_norm = qwen3.tied_tables = true;
  qwen3.rotary.theta = 1e6;
  qwen3.norm_eps = 1e-6;
  check_against_transformers("qwen3", qwen3);
}

TEST_CASE("Llama has transformers' biases, windows and stretched positions") {
  ModelShape biased = of_fixture();
  biased.kv_heads = 4;
  biased.norm_eps = 1e-6;
  biased.qkv_bias = biased.o_bias = biased.mlp_bias = true;
  check_against_transformers("llama_bias", biased);
  ModelShape window = of_fixture();
  window.norm_eps = 1e-6;
  window.qkv_bias = window.tied_tables = true;
  window.window = {.tokens = 5, .first_block = 1};
  check_against_transformers("qwen2_window", window);

  ModelShape stretched = of_fixture();
  stretched.heads = 2;
  stretched.kv_heads = 1;
  stretched.head_dim = 16;
  ModelShape llama3 = stretched;
  llama3.tied_tables = true;
  llama3.rotary = {
      .theta = 100, .scaling = RopeScaling::llama3, .factor = 8, .original_sequence = 32};
  check_against_transformers("llama3_rope", llama3);
  ModelShape yarn = stretched;
  yarn.qk_norm = true;
  yarn.norm_eps = 1e-6;
  yarn.rotary = {.theta = 1000, .scaling = RopeScaling::yarn, .factor = 4, .original_sequence = 32};
  check_against_transformers("qwen3_yarn", yarn);
}

TEST_CASE("16-bit gradients of every tensor are those of plain Llama") {
  const ModelShape shape = GENERATE(shared_heads(), normed_heads(), windowed());
  const Float16Kind kind = GENERATE(Float16Kind::bf16, Float16Kind::fp16);
  const double scale = kind == Float16Kind::fp16 ? 1024 : 1;
  INFO("qk_norm " << shape.qk_norm << (kind == Float16Kind::fp16 ? " fp16" : " bf16"));
  Gpt2Run run(shape, {.batch = 3, .sequence = 20, .compute = parameter_kind(kind)}, 4);
  const Batch batch(3, 20, shape.vocabulary, 5);
  std::vector<float> gradient = run.step_16bit(batch, scale);
  for (float& value : gradient) value = static_cast<float>(value / scale);
  const PlainLlama plain = plain_llama(shape, widened(run.parameters, kind), batch.view());
  const double tolerance = kind == Float16Kind::fp16 ? 0.006 : 0.04;
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(tolerance / 8));
  check_tensors(shape, gradient, plain.gradient, tolerance);
}

TEST_CASE("fp32 gradients of every tensor are those of plain Llama") {
  const ModelShape shape = GENERATE(shared_heads(), normed_heads());
  Gpt2Run run(shape, {.batch = 3, .sequence = 20, .compute = ParameterKind::fp32}, 4);
  const Batch batch(3, 20, shape.vocabulary, 5);
  const std::vector<float> gradient = run.step({batch}, 1);
  const PlainLlama plain = plain_llama(shape, run.parameters_fp32, batch.view());
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(1e-6));
  check_tensors(shape, gradient, plain.gradient, 1e-4);
}

TEST_CASE("a Llama's own output table has the same gradient however it is added up") {
  // More tokens than the head takes at once, and micro-batches.
  const ModelShape shape = shared_heads();
  Gpt2Run run(shape, {.batch = 60, .sequence = 20}, 4);
  const Batch large(60, 20, shape.vocabulary, 5);
  const PlainLlama plain =
      plain_llama(shape, widened(run.parameters, Float16Kind::bf16), large.view());
  check_tensors(shape, run.step_16bit(large, 1), plain.gradient, 0.04);

  const Batch first(2, 20, shape.vocabulary, 5), second(2, 20, shape.vocabulary, 6);
  Gpt2Run both(shape, {.batch = 2, .sequence = 20, .micro_step_count = 2}, 4);
  Gpt2Run one(shape, {.batch = 2, .sequence = 20}, 4);
  const std::vector<float> together = both.step({first, second}, 0.5);
  const std::vector<float> a = one.step({first}, 0.5);
  const std::vector<float> b = one.step({second}, 0.5);
  std::vector<float> sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.push_back(a[i] + b[i]);
  check_tensors(shape, together, sum, 1e-2);
}

// Rows 0 and 1 of the batch, or 2 and 3.
Batch half_of(const Batch& batch, std::int64_t vocabulary, std::ptrdiff_t half) {
  Batch part(batch.batch / 2, batch.sequence, vocabulary, 1);
  const std::ptrdiff_t count = std::ssize(part.inputs);
  std::copy_n(batch.inputs.begin() + half * count, count, part.inputs.begin());
  std::copy_n(batch.targets.begin() + half * count, count, part.targets.begin());
  return part;
}

TEST_CASE("the mean is over the targets with weight, however they are shared among micro-batches") {
  const ModelShape shape = shared_heads();
  Batch whole(4, 20, shape.vocabulary, 5);
  for (std::size_t i = 0; i < whole.targets.size(); ++i) {  // most of the first two rows
    if (i < 37 || i % 3 == 0) whole.targets[i] = kIgnoredTarget;
  }
  Gpt2Run one(shape, {.batch = 4, .sequence = 20, .compute = ParameterKind::fp32}, 4);
  const std::vector<float> expected = one.step({whole}, 1);
  const PlainLlama plain = plain_llama(shape, one.parameters_fp32, whole.view());
  CHECK(one.model->loss(0) == Approx(plain.loss).epsilon(1e-6));
  check_tensors(shape, expected, plain.gradient, 1e-4);

  Batch first = half_of(whole, shape.vocabulary, 0), second = half_of(whole, shape.vocabulary, 1);
  REQUIRE(first.view().counted_targets() < second.view().counted_targets());
  first.divisor = second.divisor = static_cast<double>(whole.view().counted_targets()) / 2;
  Gpt2Run two(shape,
              {.batch = 2, .sequence = 20, .micro_step_count = 2, .compute = ParameterKind::fp32},
              4);
  check_tensors(shape, two.step({first, second}, 0.5), expected, 1e-5);
  CHECK((two.model->loss(0) + two.model->loss(1)) / 2 == Approx(one.model->loss(0)).epsilon(1e-6));
}

TEST_CASE("a batch without a target that counts has no loss and no gradient") {
  const ModelShape shape = shared_heads();
  Batch batch(2, 20, shape.vocabulary, 5);
  std::ranges::fill(batch.targets, kIgnoredTarget);
  Gpt2Run run(shape, {.batch = 2, .sequence = 20}, 4);
  const std::vector<float> gradient = run.step({batch}, 1);
  CHECK(run.model->loss(0) == 0);
  CHECK(std::ranges::all_of(gradient, [](float value) { return value == 0; }));
}

TEST_CASE("recomputed, a Llama has the same bits as kept") {
  const ModelShape shape = GENERATE(normed_heads(), windowed());
  const Batch batch(3, 20, shape.vocabulary, 5);
  ModelOptions options{.batch = 3, .sequence = 20};
  Gpt2Run keep(shape, options);
  options.activations = Activations::recompute;
  Gpt2Run recompute(shape, options);
  CHECK(keep.step_16bit(batch, 1) == recompute.step_16bit(batch, 1));
  CHECK(keep.model->loss(0) == recompute.model->loss(0));
}

TEST_CASE("Llama keeps what every model promises") {
  const ModelShape shape = GENERATE(shared_heads(), normed_heads(), windowed());
  const Activations activations = GENERATE(Activations::keep, Activations::offload);
  check_family(shape, activations, 4);
}

}  // namespace
}  // namespace sluice::model
