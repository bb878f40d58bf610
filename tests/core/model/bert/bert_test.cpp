// BERT with its head for masked tokens: the plain one against transformers' numbers, and
// core/model/bert against the plain one.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "base/float16.h"
#include "core/model/kept_bytes.h"
#include "tests/core/model/bert/plain_bert.h"
#include "tests/core/model/family_conformance.h"
#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/gradient_distance.h"
#include "tests/core/model/llama/fixture.h"

namespace sluice::model {
namespace {

ModelShape masked_bert() {
  ModelShape shape{"bert", 3, 48, 4, 24, 97, Family::bert};
  shape.masked_head = true;
  shape.ffn = 80;
  shape.segments = 3;
  shape.norm_eps = 1e-12;
  return shape;
}

ModelShape of_fixture() {
  ModelShape shape{"fixture", 2, 16, 4, 64, 48, Family::bert};
  shape.masked_head = true;
  shape.ffn = 24;
  shape.norm_eps = 1e-12;
  return shape;
}

// Every third token has to be answered.
Batch masked_batch(std::int64_t batch, std::int64_t vocabulary, std::uint64_t seed) {
  Batch made(batch, 20, vocabulary, seed);
  for (std::size_t i = 0; i < made.targets.size(); ++i)
    if (i % 3 != 1) made.targets[i] = kIgnoredTarget;
  return made;
}

// Tensor by tensor. A bias of all keys moves the scores of a query together: its gradient is zero,
// and what is left is rounding, which is measured by the gradient of the query's bias.
void check_gradient(const ModelShape& shape, const std::vector<float>& gradient,
                    const std::vector<float>& expected, double tolerance) {
  REQUIRE(gradient.size() == expected.size());
  const FlatLayout layout = shape.flat_layout();
  for (const TensorInfo& tensor : layout.tensors) {
    INFO(tensor.name);
    if (!tensor.name.ends_with("self.key.bias")) {
      CHECK(distance(part(gradient, tensor), part(expected, tensor)) < tolerance);
      continue;
    }
    const auto of_query = std::ranges::find(
        layout.tensors, tensor.name.substr(0, tensor.name.size() - 8) + "query.bias",
        &TensorInfo::name);
    const auto length = [](std::span<const float> values) {
      return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
    };
    CHECK(length(part(gradient, tensor)) <= tolerance * length(part(expected, *of_query)));
  }
}

struct BertFixture {
  BertFixture() {
    const auto model = read_safetensors("tests/fixtures/bert/model.safetensors");
    expected = read_safetensors("tests/fixtures/bert/expected.safetensors");
    const FlatLayout layout = of_fixture().flat_layout();
    REQUIRE(model.size() == layout.tensors.size());
    for (const TensorInfo& info : layout.tensors) {
      const std::string name = info.name.starts_with("cls.") ? info.name : "bert." + info.name;
      INFO(name);
      REQUIRE(model.at(name).shape == info.shape);
      std::ranges::copy(model.at(name).values, std::back_inserter(parameters));
      std::ranges::copy(expected.at("grad." + name).values, std::back_inserter(gradient));
    }
  }
  std::vector<std::int32_t> numbers(const std::string& name) const {
    const auto& integers = expected.at(name).integers;
    return {integers.begin(), integers.end()};
  }

  std::map<std::string, FixtureTensor> expected;
  std::vector<float> parameters;
  std::vector<float> gradient;  // flat order
};

bool is_near(float a, float b) { return std::abs(a - b) <= 1e-5f + 1e-5f * std::abs(b); }

TEST_CASE("plain BERT has transformers' logits, loss and gradients") {
  const BertFixture fixture;
  const std::vector<std::int32_t> inputs = fixture.numbers("input_ids"),
                                  targets = fixture.numbers("labels");
  // The second row's last three tokens are padding.
  const PlainBert plain =
      plain_bert(of_fixture(), fixture.parameters, {2, 12, inputs, targets},
                 {.segments = fixture.numbers("token_type_ids"), .seen = {12, 9}});
  CHECK(plain.loss == Approx(fixture.expected.at("loss").values.front()).epsilon(1e-5));
  CHECK(std::ranges::equal(plain.logits, fixture.expected.at("logits").values, is_near));
  CHECK(std::ranges::equal(plain.gradient, fixture.gradient, is_near));
}

TEST_CASE("a fixture's BERT has plain BERT's loss and gradients in fp32") {
  const BertFixture fixture;
  const ModelShape shape = of_fixture();
  Batch batch(2, 12, shape.vocabulary, 1);
  batch.inputs = fixture.numbers("input_ids");
  batch.targets = fixture.numbers("labels");
  const PlainBert plain = plain_bert(shape, fixture.parameters, batch.view());
  Gpt2Run run(shape, {.batch = 2, .sequence = 12, .compute = ParameterKind::fp32});
  std::ranges::copy(fixture.parameters, run.parameters_fp32.begin());
  const std::vector<float> gradient = run.step({batch}, 1);
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(1e-6));
  CHECK(std::ranges::equal(gradient, plain.gradient, is_near));
}

TEST_CASE("gradients under dropout are those of plain BERT") {
  ModelShape shape = masked_bert();
  shape.dropout = {.embedding = 0.15, .attention = 0.2, .rows = 0.15};
  Batch batch = masked_batch(3, shape.vocabulary, 5);
  batch.drop_keys = {3, 99, 1u << 31};
  Gpt2Run run(shape, {.batch = 3, .sequence = 20, .compute = ParameterKind::fp32}, 4);
  const std::vector<float> gradient = run.step({batch}, 1);
  const PlainBert plain = plain_bert(shape, run.parameters_fp32, batch.view());
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(1e-6));
  check_gradient(shape, gradient, plain.gradient, 1e-4);
}

TEST_CASE("16-bit gradients of every tensor are those of plain BERT") {
  const ModelShape shape = masked_bert();
  const Float16Kind kind = GENERATE(Float16Kind::bf16, Float16Kind::fp16);
  const double scale = kind == Float16Kind::fp16 ? 1024 : 1;
  INFO((kind == Float16Kind::fp16 ? "fp16" : "bf16"));
  Gpt2Run run(shape, {.batch = 3, .sequence = 20, .compute = parameter_kind(kind)}, 4);
  const Batch batch = masked_batch(3, shape.vocabulary, 5);
  std::vector<float> gradient = run.step_16bit(batch, scale);
  for (float& value : gradient) value = static_cast<float>(value / scale);
  const PlainBert plain = plain_bert(shape, widened(run.parameters, kind), batch.view());
  const double tolerance = kind == Float16Kind::fp16 ? 0.006 : 0.04;
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(tolerance / 8));
  check_gradient(shape, gradient, plain.gradient, tolerance);
}

TEST_CASE("fp32 gradients of every tensor are those of plain BERT") {
  const ModelShape shape = masked_bert();
  Gpt2Run run(shape, {.batch = 3, .sequence = 20, .compute = ParameterKind::fp32}, 4);
  const Batch batch = masked_batch(3, shape.vocabulary, 5);
  const std::vector<float> gradient = run.step({batch}, 1);
  const PlainBert plain = plain_bert(shape, run.parameters_fp32, batch.view());
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(1e-6));
  check_gradient(shape, gradient, plain.gradient, 1e-5);
}

TEST_CASE("a bias on logits has the same gradient however it is added up") {
  // More tokens than the head takes at once, and micro-batches.
  const ModelShape shape = masked_bert();
  const ModelOptions options{.batch = 60, .sequence = 20, .compute = ParameterKind::fp32};
  Gpt2Run run(shape, options, 4);
  const Batch large = masked_batch(60, shape.vocabulary, 5);
  const PlainBert plain = plain_bert(shape, run.parameters_fp32, large.view());
  check_gradient(shape, run.step({large}, 1), plain.gradient, 1e-4);

  const Batch first = masked_batch(2, shape.vocabulary, 5),
              second = masked_batch(2, shape.vocabulary, 6);
  ModelOptions two{.batch = 2, .sequence = 20, .compute = ParameterKind::fp32};
  Gpt2Run one(shape, two, 4);
  two.micro_step_count = 2;
  Gpt2Run both(shape, two, 4);
  const std::vector<float> a = one.step({first}, 0.5), b = one.step({second}, 0.5);
  std::vector<float> sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.push_back(a[i] + b[i]);
  check_gradient(shape, both.step({first, second}, 0.5), sum, 1e-5);
}

TEST_CASE("recomputed, a BERT has the same bits as kept") {
  const ModelShape shape = masked_bert();
  const Batch batch = masked_batch(3, shape.vocabulary, 5);
  ModelOptions options{.batch = 3, .sequence = 20};
  Gpt2Run keep(shape, options);
  options.activations = Activations::recompute;
  Gpt2Run recompute(shape, options);
  CHECK(keep.step_16bit(batch, 1) == recompute.step_16bit(batch, 1));
  CHECK(keep.model->loss(0) == recompute.model->loss(0));
}

TEST_CASE("block and head of a BERT keep the bytes that are counted") {
  ModelShape shape{"bert", 1, 256, 4, 192, 97, Family::bert};
  shape.masked_head = true;
  shape.ffn = 640;
  const std::int64_t batch = 2, sequence = 192;
  Gpt2Run run(shape, {.batch = batch, .sequence = sequence, .activations = Activations::offload});
  const Batch tokens(batch, sequence, shape.vocabulary, 5);
  REQUIRE(run.model->set_batch(0, tokens.view(), BatchUse::training).ok());
  for (const std::int32_t l : {0, 1, 2}) REQUIRE(run.model->forward(LayerId{l}, 0).ok());
  for (const std::int32_t l : {1, 2}) {
    INFO("layer " << l);
    const auto kept = run.model->kept_blocks()->kept(LayerId{l}, 0);
    REQUIRE(kept.ok());
    std::int64_t bytes = 0;
    for (const KeptBlock& block : *kept) bytes += block.size_bytes;
    const std::vector<std::int64_t> counted = kept_block_bytes(
        shape, LayerId{l}, batch, sequence, Activations::offload, ParameterKind::bf16);
    // The two numbers a row of each norm are in fp32 where a kernel keeps them so.
    const std::int64_t statistics = batch * sequence * 2 * 2 * (l == 1 ? 2 : 1);
    const std::int64_t sum = std::accumulate(counted.begin(), counted.end(), std::int64_t{0});
    CHECK(bytes >= sum);
    CHECK(bytes <= sum + statistics);
  }
}

TEST_CASE("BERT keeps what every model promises") {
  const ModelShape shape = masked_bert();
  const Activations activations = GENERATE(Activations::keep, Activations::offload);
  check_family(shape, activations, 4);
}

TEST_CASE("a BERT without its head for masked tokens alone is not trained, and none writes text") {
  ModelShape shape = masked_bert();
  Gpt2Run run(shape, {.batch = 1, .sequence = 20});
  const auto text = run.text({.token_count = 1});
  REQUIRE_FALSE(text.ok());
  CHECK_THAT(text.error().message(), Catch::Contains("answers hidden tokens"));
  shape.masked_head = false;
  const Status status = check_trainable(shape);
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(), Catch::Contains("'masked_head = true'"));
}

}  // namespace
}  // namespace sluice::model
