// BERT that classifies: the plain one and core/model/bert against transformers' numbers, of records
// that are padded and pairs, and the two against each other.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "core/model/compute_device.h"
#include "core/model/kept_bytes.h"
#include "tests/core/model/bert/plain_bert.h"
#include "tests/core/model/family_conformance.h"
#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/gradient_distance.h"
#include "tests/core/model/llama/fixture.h"

namespace sluice::model {
namespace {

ModelShape classifier() {
  ModelShape shape{"bert", 3, 48, 4, 24, 97, Family::bert};
  shape.classes = 5;
  shape.ffn = 80;
  shape.norm_eps = 1e-12;
  return shape;
}

ModelShape classifier_of_fixture() {
  ModelShape shape{"fixture", 2, 16, 4, 64, 48, Family::bert};
  shape.classes = 3;
  shape.ffn = 24;
  shape.norm_eps = 1e-12;
  return shape;
}

const std::string kFolder = "tests/fixtures/bert_classify/";

std::vector<std::int32_t> numbers(const FixtureTensor& tensor) {
  return {tensor.integers.begin(), tensor.integers.end()};
}

// What fills a record is a document of its own, which no token of the record sees.
void fill_behind(Batch& batch, const std::vector<std::int64_t>& lengths) {
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < batch.sequence; ++i)
      batch.document_begins.push_back(static_cast<std::int32_t>(i < length ? 0 : length));
  }
}

// A file of what transformers computes, and the checkpoint in flat order.
struct ClassifierFixture {
  explicit ClassifierFixture(const std::string& file) {
    const auto model = read_safetensors(kFolder + "model.safetensors");
    expected = read_safetensors(kFolder + file);
    const FlatLayout layout = classifier_of_fixture().flat_layout();
    REQUIRE(model.size() == layout.tensors.size());
    for (const TensorInfo& info : layout.tensors) {
      const std::string name =
          info.name.starts_with("classifier.") ? info.name : "bert." + info.name;
      INFO(name);
      REQUIRE(model.at(name).shape == info.shape);
      std::ranges::copy(model.at(name).values, std::back_inserter(parameters));
      std::ranges::copy(expected.at("grad." + name).values, std::back_inserter(gradient));
    }
    if (!expected.contains("attention_mask")) return;
    const FixtureTensor& mask = expected.at("attention_mask");
    for (auto row = mask.integers.begin(); row != mask.integers.end(); row += mask.shape[1])
      lengths.push_back(std::count(row, row + mask.shape[1], 1));
  }
  Batch batch() const {
    const FixtureTensor& ids = expected.at("input_ids");
    Batch made(ids.shape[0], ids.shape[1], 48, 1);
    made.inputs = numbers(ids);
    made.targets = numbers(expected.at("labels"));
    made.target_sequence = 1;
    fill_behind(made, lengths);
    if (!lengths.empty()) made.segments = numbers(expected.at("token_type_ids"));
    return made;
  }
  std::int64_t right_answers() const {
    const std::vector<float>& logits = expected.at("logits").values;
    const auto classes = std::ssize(logits) / std::ssize(expected.at("labels").integers);
    std::int64_t right = 0;
    auto row = logits.begin();
    for (const std::int64_t label : expected.at("labels").integers) {
      right += std::max_element(row, row + classes) - row == label ? 1 : 0;
      row += classes;
    }
    return right;
  }

  std::map<std::string, FixtureTensor> expected;
  std::vector<std::int64_t> lengths;  // empty: nothing is filled
  std::vector<float> parameters;
  std::vector<float> gradient;
};

bool is_close(float a, float b) { return std::abs(a - b) <= 1e-5f + 1e-5f * std::abs(b); }

// Records of 20 tokens at most, one of them whole.
Batch records(std::uint64_t seed) {
  Batch batch(3, 20, 97, seed);
  batch.targets = {static_cast<std::int32_t>(seed % 5), 3, 1};
  batch.target_sequence = 1;
  fill_behind(batch, {11, 20, 2});
  for (std::size_t i = 0; i < batch.inputs.size(); ++i)
    batch.segments.push_back(i % 20 >= 7 && i % 20 < 13 ? 1 : 0);
  return batch;
}

PlainBert plain_of(const ModelShape& shape, std::span<const float> parameters, const Batch& batch) {
  return plain_bert(shape, parameters, batch.view(),
                    {.segments = batch.segments, .seen = {11, 20, 2}});
}

// Keys' biases have no gradient but rounding.
void check_classifier(const ModelShape& shape, std::vector<float> found,
                      std::vector<float> expected, double tolerance) {
  for (const TensorInfo& tensor : shape.flat_layout().tensors) {
    if (!tensor.name.ends_with("self.key.bias")) continue;
    std::fill_n(found.begin() + tensor.first, tensor.count, 1.0f);
    std::fill_n(expected.begin() + tensor.first, tensor.count, 1.0f);
  }
  check_tensors(shape, found, expected, tolerance);
}

TEST_CASE("a plain classifier has transformers' logits, loss and gradients") {
  const ClassifierFixture fixture(GENERATE("expected.safetensors", "records.safetensors"));
  const Batch batch = fixture.batch();
  const PlainBert plain = plain_bert(classifier_of_fixture(), fixture.parameters, batch.view(),
                                     {.segments = batch.segments, .seen = fixture.lengths});
  CHECK(plain.loss == Approx(fixture.expected.at("loss").values.front()).epsilon(1e-5));
  CHECK(std::ranges::equal(plain.logits, fixture.expected.at("logits").values, is_close));
  CHECK(std::ranges::equal(plain.gradient, fixture.gradient, is_close));
}

TEST_CASE("a classifier has transformers' loss, gradients and right answers") {
  const ClassifierFixture fixture(GENERATE("expected.safetensors", "records.safetensors"));
  const Batch batch = fixture.batch();
  Gpt2Run run(classifier_of_fixture(),
              {.batch = batch.batch, .sequence = batch.sequence, .compute = ParameterKind::fp32});
  std::ranges::copy(fixture.parameters, run.parameters_fp32.begin());
  const std::vector<float> gradient = run.step({batch}, 1);
  CHECK(run.model->loss(0) == Approx(fixture.expected.at("loss").values.front()).epsilon(1e-5));
  CHECK(std::ranges::equal(gradient, fixture.gradient, is_close));
  CHECK(run.model->right_answers(0) == fixture.right_answers());
}

TEST_CASE("gradients of a classifier under dropout are those of the plain one") {
  ModelShape shape = classifier();
  shape.dropout = {.embedding = 0.15, .attention = 0.2, .rows = 0.15, .output = 0.3};
  Batch batch = records(5);
  batch.drop_keys = {3, 99, 1u << 31};
  Gpt2Run run(shape, {.batch = 3, .sequence = 20, .compute = ParameterKind::fp32}, 4);
  const std::vector<float> gradient = run.step({batch}, 1);
  const PlainBert plain = plain_of(shape, run.parameters_fp32, batch);
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(1e-6));
  check_classifier(shape, gradient, plain.gradient, 1e-4);
}

TEST_CASE("16-bit gradients of a classifier are those of the plain one") {
  const ModelShape shape = classifier();
  Gpt2Run run(shape, {.batch = 3, .sequence = 20}, 4);
  const Batch batch = records(5);
  const std::vector<float> gradient = run.step_16bit(batch, 1);
  const PlainBert plain = plain_of(shape, widened(run.parameters, Float16Kind::bf16), batch);
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(0.01));
  check_classifier(shape, gradient, plain.gradient, 0.06);
}

TEST_CASE("the loss of micro-batches is the mean over all their records") {
  const ModelShape shape = classifier();
  ModelOptions options{.batch = 3, .sequence = 20, .compute = ParameterKind::fp32};
  Gpt2Run one(shape, options, 4);
  const std::vector<float> a = one.step({records(5)}, 0.5), b = one.step({records(7)}, 0.5);
  std::vector<float> sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.push_back(a[i] + b[i]);
  options.micro_step_count = 2;
  Gpt2Run both(shape, options, 4);
  check_classifier(shape, both.step({records(5), records(7)}, 0.5), sum, 1e-5);
}

TEST_CASE("kept, recomputed and offloaded, a classifier has the same bits") {
  ModelShape shape = classifier();
  shape.dropout.output = 0.2;
  Batch batch = records(5);
  batch.drop_keys = {3, 99, 7};
  ModelOptions options{.batch = 3, .sequence = 20};
  Gpt2Run keep(shape, options, 4);
  const std::vector<float> kept = keep.step_16bit(batch, 1);
  for (const Activations other : {Activations::recompute, Activations::offload}) {
    options.activations = other;
    Gpt2Run run(shape, options, 4);
    CHECK(run.step_16bit(batch, 1) == kept);
    CHECK(run.model->loss(0) == keep.model->loss(0));
  }
}

TEST_CASE("the head of a classifier keeps the bytes that are counted") {
  ModelShape shape = classifier();
  shape.layers = 1;
  const std::int64_t batch = 3, sequence = 20;
  Gpt2Run run(shape, {.batch = batch, .sequence = sequence, .activations = Activations::offload});
  const Batch tokens = records(5);
  REQUIRE(run.model->set_batch(0, tokens.view(), BatchUse::training).ok());
  for (const std::int32_t l : {0, 1, 2}) REQUIRE(run.model->forward(LayerId{l}, 0).ok());
  const auto kept = run.model->kept_blocks()->kept(LayerId{2}, 0);
  REQUIRE(kept.ok());
  std::int64_t bytes = 0;
  for (const KeptBlock& block : *kept) bytes += block.size_bytes;
  const std::vector<std::int64_t> counted = kept_block_bytes(
      shape, LayerId{2}, batch, sequence, Activations::offload, ParameterKind::bf16);
  REQUIRE(counted.size() == 1);
  CHECK(bytes == counted.front());
  CHECK(bytes == (batch * sequence + batch) * shape.hidden * 2);
  CHECK(loss_bytes(shape) == 16);
}

TEST_CASE("a classifier keeps what every model promises") {
  const Activations activations = GENERATE(Activations::keep, Activations::offload);
  check_family(classifier(), activations, 4);
}

TEST_CASE("batches that are none of a classifier's are refused") {
  const ModelShape shape = classifier();
  Gpt2Run run(shape, {.batch = 3, .sequence = 20});
  const auto refused = [&](const Batch& batch) {
    const Status status = run.model->set_batch(0, batch.view(), BatchUse::training);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code() == ErrorCode::config);
    return status.error().message();
  };
  Batch batch = records(5);
  batch.targets[1] = 5;
  CHECK_THAT(refused(batch), Catch::Contains("class 5 came to model 'bert', which has 5 classes"));
  batch = records(5);
  batch.segments[7] = 2;
  CHECK_THAT(refused(batch), Catch::Contains("segment 2") && Catch::Contains("2 kinds of tokens"));
  CHECK_THAT(refused(Batch(3, 20, 97, 1)), Catch::Contains("20 targets a window"));
  const auto text = run.text({.token_count = 1});
  REQUIRE_FALSE(text.ok());
  CHECK_THAT(text.error().message(), Catch::Contains("answers classes"));
}

}  // namespace
}  // namespace sluice::model
