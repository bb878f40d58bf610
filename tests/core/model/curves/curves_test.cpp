// Folders as transformers saves them, trained for 20 steps of AdamW in fp32: the losses are those
// that transformers and torch.optim.AdamW have (tests/fixtures/make_curves.py).

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/optimizer/update_rule.h"
#include "core/weights/checkpoint.h"
#include "core/weights/model_folder.h"
#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/llama/fixture.h"

namespace sluice::model {
namespace {

const std::string kFixtures = "tests/fixtures/";
constexpr double kTolerance = 1e-4;

std::vector<std::int32_t> numbers_of(const FixtureTensor& tensor) {
  return {tensor.integers.begin(), tensor.integers.end()};
}

Batch decoder_batch(const std::map<std::string, FixtureTensor>& expected, const ModelShape& shape) {
  const FixtureTensor& ids = expected.at("input_ids");
  Batch batch(ids.shape[0], ids.shape[1], shape.vocabulary, 1);
  batch.inputs = numbers_of(ids);
  batch.targets = numbers_of(expected.at("labels"));
  batch.decoder_inputs = numbers_of(expected.at("decoder_input_ids"));
  batch.target_sequence = expected.at("labels").shape[1];
  return batch;
}

Batch classified_batch(const std::map<std::string, FixtureTensor>& expected,
                       const ModelShape& shape) {
  const FixtureTensor& ids = expected.at("input_ids");
  Batch batch(ids.shape[0], ids.shape[1], shape.vocabulary, 1);
  batch.inputs = numbers_of(ids);
  batch.targets = numbers_of(expected.at("labels"));
  batch.target_sequence = 1;
  return batch;
}

// What the labels of a causal model stand for is answered by the token before.
Batch batch_of(const std::string& name, const ModelShape& shape) {
  const auto expected = read_safetensors(kFixtures + name + "/expected.safetensors");
  if (shape.has_decoder()) return decoder_batch(expected, shape);
  if (shape.classifies()) return classified_batch(expected, shape);
  const FixtureTensor& ids = expected.at("input_ids");
  const FixtureTensor& labels = expected.at("labels");
  const std::int64_t shift = shape.is_causal() ? 1 : 0;
  const std::int64_t rows = ids.shape[0], length = ids.shape[1];
  Batch batch(rows, length - shift, shape.vocabulary, 1);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < length - shift; ++i) {
      const auto to = static_cast<std::size_t>(row * (length - shift) + i);
      const auto from = static_cast<std::size_t>(row * length + i);
      batch.inputs[to] = static_cast<std::int32_t>(ids.integers[from]);
      batch.targets[to] =
          static_cast<std::int32_t>(labels.integers[from + static_cast<std::size_t>(shift)]);
    }
  }
  return batch;
}

std::vector<double> losses_of(const std::string& name, std::size_t steps) {
  const std::string folder = kFixtures + name;
  Result<ModelShape> shape = weights::load_shape(folder);
  REQUIRE(shape.ok());
  shape->stacks.spans = {.share = 0.4,
                         .length = 2};  // a decoder takes more than the batch has then
  const auto checkpoint = weights::Checkpoint::open(folder, *shape);
  REQUIRE((checkpoint.ok() && checkpoint->has_value()));
  const Batch batch = batch_of(name, *shape);
  Gpt2Run run(*shape,
              {.batch = batch.batch, .sequence = batch.sequence, .compute = ParameterKind::fp32});
  REQUIRE((*checkpoint)->fill(0, run.parameters_fp32).ok());
  std::vector<float> average(run.parameters_fp32.size()), squares(run.parameters_fp32.size());
  std::vector<double> losses;
  for (std::size_t step = 1; step <= steps; ++step) {
    const std::vector<float> gradient = run.step({batch}, 1);
    losses.push_back(run.model->loss(0));
    optimizer::UpdateArrays arrays;
    arrays.element_count = std::ssize(gradient);
    arrays.state = {run.parameters_fp32.data(), average.data(), squares.data()};
    arrays.gradient = gradient.data();
    const auto count = static_cast<std::int64_t>(step);
    optimizer::update(optimizer::update_scalars({}, count, 1), arrays);
  }
  return losses;
}

TEST_CASE("20 steps of AdamW have the losses of transformers and torch") {
  std::ifstream file(kFixtures + "curves.json");
  const auto curves = nlohmann::json::parse(file);
  REQUIRE(curves.size() == 10);
  for (const auto& [name, curve] : curves.items()) {
    INFO(name);
    const auto expected = curve.get<std::vector<double>>();
    REQUIRE(expected.size() == 20);
    REQUIRE(expected.back() < 0.99 * expected.front());
    const std::vector<double> losses = losses_of(name, expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("step " << i + 1);
      CHECK(losses[i] == Approx(expected[i]).epsilon(kTolerance));
    }
  }
}

}  // namespace
}  // namespace sluice::model
