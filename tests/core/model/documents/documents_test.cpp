// Windows of several documents, of which a token sees its own alone: beside transformers, and
// beside each document as a window of its own.

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/model/compute_memory.h"
#include "core/weights/checkpoint.h"
#include "core/weights/model_folder.h"
#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/gradient_distance.h"
#include "tests/core/model/llama/fixture.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kSequence = 20;

// A GPT-2, a Llama with all that attention may have, and one that looks both ways.
std::vector<ModelShape> families() {
  ModelShape llama{"llama", 3, 48, 4, 24, 97, Family::llama};
  llama.kv_heads = 2;
  llama.ffn = 80;
  llama.qk_norm = true;
  llama.window = {.tokens = 7, .first_block = 1};
  ModelShape bert{"bert", 3, 48, 4, 24, 97, Family::bert};
  bert.masked_head = true;
  return {kSmall, llama, bert};
}

void set_documents(Batch& batch, const std::vector<std::vector<std::int64_t>>& lengths) {
  batch.document_begins.clear();
  for (const auto& window : lengths) {
    std::int32_t begin = 0;
    for (const std::int64_t length : window) {
      batch.document_begins.insert(batch.document_begins.end(), static_cast<std::size_t>(length),
                                   begin);
      begin += static_cast<std::int32_t>(length);
    }
  }
}

// Tokens of the batch as one window of a batch of its own.
Batch alone(const Batch& batch, std::int64_t first, std::int64_t count) {
  Batch one(1, count, 1, 1);
  std::copy_n(batch.inputs.begin() + first, count, one.inputs.begin());
  std::copy_n(batch.targets.begin() + first, count, one.targets.begin());
  one.divisor = batch.view().loss_divisor();
  return one;
}

// Keys' biases of a BERT have no gradient but rounding.
void check_gradients(const ModelShape& shape, std::vector<float> found, std::vector<float> expected,
                     double tolerance) {
  for (const TensorInfo& tensor : shape.flat_layout().tensors) {
    if (!tensor.name.ends_with("self.key.bias")) continue;
    std::fill_n(found.begin() + tensor.first, tensor.count, 1.0f);
    std::fill_n(expected.begin() + tensor.first, tensor.count, 1.0f);
  }
  check_tensors(shape, found, expected, tolerance);
}

TEST_CASE("two documents in a window have the loss and gradients of each alone") {
  const ModelShape shape = GENERATE(from_range(families()));
  INFO(shape.name);
  const ModelOptions options{.batch = 2, .sequence = kSequence, .compute = ParameterKind::fp32};
  Batch batch(2, kSequence, shape.vocabulary, 5);
  set_documents(batch, {{8, 12}, {3, 1, 16}});
  batch.targets[9] = kIgnoredTarget;
  Gpt2Run run(shape, options, 4);
  const std::vector<float> found = run.step({batch}, 1);
  const double found_loss = run.model->loss(0);

  std::vector<float> sum(found.size());
  double loss = 0;
  std::int64_t first = 0;
  for (const std::int64_t count : {8, 12, 3, 1, 16}) {
    const std::vector<float> part = run.step({alone(batch, first, count)}, 1);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    loss += run.model->loss(0);
    first += count;
  }
  CHECK(found_loss == Approx(loss).epsilon(1e-5));
  check_gradients(shape, found, sum, 1e-5);
  batch.document_begins.clear();
  run.step({batch}, 1);
  CHECK(run.model->loss(0) != Approx(loss).epsilon(1e-3));
}

// Where documents are apart, a masked kernel computes attention, and others where they are
// together; the numbers are not the same bits.
TEST_CASE("one document a window has the numbers of documents together") {
  const ModelShape shape = GENERATE(from_range(families()));
  INFO(shape.name);
  Batch batch(2, kSequence, shape.vocabulary, 5);
  Gpt2Run run(shape, {.batch = 2, .sequence = kSequence, .compute = ParameterKind::fp32}, 4);
  const std::vector<float> together = run.step({batch}, 1);
  const double loss = run.model->loss(0);
  set_documents(batch, {{kSequence}, {kSequence}});
  check_gradients(shape, run.step({batch}, 1), together, 2e-6);
  CHECK(run.model->loss(0) == Approx(loss).epsilon(1e-6));
}

TEST_CASE("recomputed, documents have the same bits as kept") {
  const ModelShape shape = GENERATE(from_range(families()));
  INFO(shape.name);
  Batch batch(2, kSequence, shape.vocabulary, 5);
  set_documents(batch, {{8, 12}, {3, 1, 16}});
  ModelOptions options{.batch = 2, .sequence = kSequence};
  Gpt2Run keep(shape, options);
  options.activations = Activations::recompute;
  Gpt2Run recompute(shape, options);
  CHECK(keep.step_16bit(batch, 1) == recompute.step_16bit(batch, 1));
  CHECK(keep.model->loss(0) == recompute.model->loss(0));
}

TEST_CASE("the memory plan has room for the mask of one window") {
  // So long that nothing else of a layer takes as much.
  constexpr std::int64_t kLong = 8192;
  ModelOptions options{.batch = 2, .sequence = kLong};
  const ComputeMemory together = compute_memory(kSmall, options, Products::as_they_are);
  options.documents = Documents::apart;
  const ComputeMemory apart = compute_memory(kSmall, options, Products::as_they_are);
  CHECK(apart.temporary_bytes - together.temporary_bytes >= kLong * kLong * 4);
  CHECK(apart.activation_bytes == together.activation_bytes);
}

std::string name_in_file(const ModelShape& shape, const std::string& name) {
  if (name.starts_with("lm_head") || name.starts_with("cls.")) return name;
  return (shape.family == Family::bert ? "bert." : "model.") + name;
}

// A causal model answers the label of the next token, as in make_documents.py.
Batch documents_of(const std::map<std::string, FixtureTensor>& fixture, const ModelShape& shape) {
  const FixtureTensor& ids = fixture.at("input_ids");
  const std::int64_t shift = shape.is_causal() ? 1 : 0;
  const std::int64_t length = ids.shape[1], sequence = length - shift;
  Batch batch(ids.shape[0], sequence, shape.vocabulary, 1);
  for (std::int64_t i = 0; i < batch.batch * sequence; ++i) {
    const auto from = static_cast<std::size_t>(i / sequence * length + i % sequence);
    const auto number = [&](const char* name, std::int64_t ahead) {
      return static_cast<std::int32_t>(
          fixture.at(name).integers[from + static_cast<std::size_t>(ahead)]);
    };
    batch.inputs[static_cast<std::size_t>(i)] = number("input_ids", 0);
    batch.targets[static_cast<std::size_t>(i)] = number("labels", shift);
    batch.document_begins.push_back(static_cast<std::int32_t>(i % sequence) -
                                    number("position_ids", 0));
  }
  return batch;
}

TEST_CASE("documents have transformers' loss and gradients") {
  for (const std::string name : {"llama", "qwen2_window", "bert"}) {
    INFO(name);
    const std::string folder = "tests/fixtures/" + name;
    const ModelShape shape = weights::load_shape(folder).value();
    const auto fixture = read_safetensors(folder + "/documents.safetensors");
    const Batch batch = documents_of(fixture, shape);
    Gpt2Run run(shape,
                {.batch = batch.batch, .sequence = batch.sequence, .compute = ParameterKind::fp32});
    const auto checkpoint = weights::Checkpoint::open(folder, shape);
    REQUIRE((checkpoint.ok() && checkpoint->has_value()));
    REQUIRE((*checkpoint)->fill(0, run.parameters_fp32).ok());
    std::vector<float> expected;
    for (const TensorInfo& tensor : shape.flat_layout().tensors)
      std::ranges::copy(fixture.at("grad." + name_in_file(shape, tensor.name)).values,
                        std::back_inserter(expected));
    check_gradients(shape, run.step({batch}, 1), expected, 1e-5);
    CHECK(run.model->loss(0) == Approx(double{fixture.at("loss").values.front()}).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace sluice::model
