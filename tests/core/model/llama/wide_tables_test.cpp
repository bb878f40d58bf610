// A Llama whose tables are cut into layers (core/model/layer_places.h), against the plain one,
// which knows of no pieces.

#include <catch2/catch.hpp>

#include "core/model/layer_places.h"
#include "core/model/lora.h"
#include "tests/core/model/family_conformance.h"
#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/gradient_distance.h"
#include "tests/core/model/llama/plain_llama.h"

namespace sluice::model {
namespace {

// Three pieces a table.
ModelShape wide() {
  ModelShape shape{"wide", 2, 48, 4, 24, 48'000, Family::llama};
  shape.kv_heads = 2;
  shape.ffn = 80;
  REQUIRE(layer_places(shape).outputs == 3);
  return shape;
}

// Tokens and targets of all pieces, some of them without weight.
Batch batch_of(const ModelShape& shape, std::int64_t rows, std::uint64_t seed) {
  Batch batch(rows, 20, shape.vocabulary, seed);
  for (std::size_t i = 0; i < batch.targets.size(); i += 7) batch.targets[i] = kIgnoredTarget;
  return batch;
}

TEST_CASE("a Llama with wide tables has the plain one's loss and gradients") {
  const ModelShape shape = wide();
  Gpt2Run run(shape, {.batch = 3, .sequence = 20, .compute = ParameterKind::fp32}, 4);
  const Batch batch = batch_of(shape, 3, 5);
  const std::vector<float> gradient = run.step({batch}, 1);
  const PlainLlama plain = plain_llama(shape, run.parameters_fp32, batch.view());
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(1e-6));
  check_tensors(shape, gradient, plain.gradient, 1e-5);
}

TEST_CASE("so it has in 16 bits, kept or computed anew, to the bit") {
  const ModelShape shape = wide();
  const Float16Kind kind = GENERATE(Float16Kind::bf16, Float16Kind::fp16);
  const double scale = kind == Float16Kind::fp16 ? 1024 : 1;
  const Batch batch = batch_of(shape, 3, 5);
  ModelOptions options{.batch = 3, .sequence = 20, .compute = parameter_kind(kind)};
  Gpt2Run kept(shape, options, 4);
  const std::vector<float> gradient = kept.step_16bit(batch, scale);
  std::vector<float> unscaled = gradient;
  for (float& value : unscaled) value = static_cast<float>(value / scale);
  const PlainLlama plain = plain_llama(shape, widened(kept.parameters, kind), batch.view());
  const double tolerance = kind == Float16Kind::fp16 ? 0.006 : 0.04;
  CHECK(kept.model->loss(0) == Approx(plain.loss).epsilon(tolerance / 8));
  check_tensors(shape, unscaled, plain.gradient, tolerance);

  options.activations = Activations::recompute;
  Gpt2Run anew(shape, options, 4);
  CHECK(anew.step_16bit(batch, scale) == gradient);
  CHECK(anew.model->loss(0) == kept.model->loss(0));
}

TEST_CASE("wide tables have the same gradient however it is added up") {
  const ModelShape shape = wide();
  // More tokens than a piece takes at once.
  const Batch large = batch_of(shape, 56, 5);
  Gpt2Run run(shape, {.batch = 56, .sequence = 20, .activations = Activations::recompute}, 4);
  const PlainLlama plain =
      plain_llama(shape, widened(run.parameters, Float16Kind::bf16), large.view());
  check_tensors(shape, run.step_16bit(large, 1), plain.gradient, 0.04);

  const Batch first = batch_of(shape, 2, 5), second = batch_of(shape, 2, 6);
  const ModelOptions fp32{.batch = 2, .sequence = 20, .compute = ParameterKind::fp32};
  ModelOptions two = fp32;
  two.micro_step_count = 2;
  Gpt2Run both(shape, two, 4), one(shape, fp32, 4);
  const std::vector<float> together = both.step({first, second}, 0.5);
  const std::vector<float> a = one.step({first}, 0.5);
  const std::vector<float> b = one.step({second}, 0.5);
  std::vector<float> sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.push_back(a[i] + b[i]);
  check_tensors(shape, together, sum, 1e-5);
}

TEST_CASE("adapters beside wide tables begin with the model's own loss, to the bit") {
  const ModelShape shape = wide();
  const ModelOptions options{.batch = 2, .sequence = 20, .compute = ParameterKind::fp32};
  Gpt2Run base(shape, options, 4);
  const Batch batch = batch_of(shape, 2, 5);
  base.step({batch}, 1);

  const ModelShape adapted = with_adapters(shape, {.rank = 2, .alpha = 4}).value();
  std::vector<float> of_adapters(static_cast<std::size_t>(adapted.flat_layout().parameter_count));
  fill_initial(adapted.flat_layout(), 1, 0, of_adapters);
  ModelOptions beside = options;
  beside.base = ParameterSpan(base.parameters_fp32);
  const BuiltModel built = make_on_host(adapted, beside, ParameterSpan(of_adapters));
  REQUIRE(built.model->set_batch(0, batch.view(), BatchUse::validation).ok());
  for (std::int32_t l = 0; l < built.model->layout().layer_count(); ++l)
    REQUIRE(built.model->forward(LayerId{l}, 0).ok());
  CHECK(built.model->loss(0) == base.model->loss(0));
}

// The loss of a window whose last target is `answer`, all others without weight.
double loss_of_answer(Gpt2Run& run, std::span<const std::int32_t> prompt, std::int32_t answer) {
  Batch batch(1, 20, 48'000, 1);
  std::ranges::copy(prompt, batch.inputs.begin());
  std::ranges::fill(batch.targets, kIgnoredTarget);
  batch.targets[prompt.size() - 1] = answer;
  REQUIRE(run.model->set_batch(0, batch.view(), BatchUse::validation).ok());
  for (std::int32_t l = 0; l < run.model->layout().layer_count(); ++l)
    REQUIRE(run.model->forward(LayerId{l}, 0).ok());
  return run.model->loss(0);
}

TEST_CASE("a text is written with the likeliest token of all pieces") {
  const ModelShape shape = wide();
  Gpt2Run run(shape, {.batch = 1, .sequence = 20, .compute = ParameterKind::fp32}, 4);
  const std::vector<std::int32_t> prompt = {7, 20'000, 47'000};
  std::int32_t written = -1;
  SampleOptions options;
  options.prompt_tokens.assign(prompt.begin(), prompt.end());
  options.written_tokens = 48'000;
  options.token_count = 1;
  options.temperature = 0;
  options.text_of = [&](std::int32_t token) {
    written = token;
    return std::string_view("x");
  };
  REQUIRE(run.text(options).value() == "x");
  const double least = loss_of_answer(run, prompt, written);
  for (std::int32_t other = 0; other < 48'000; other += 1'499)
    CHECK(loss_of_answer(run, prompt, other) >= least);
}

TEST_CASE("wide tables hold to all that a model is asked for") {
  check_family(wide(), Activations::keep, 4);
}

}  // namespace
}  // namespace sluice::model
