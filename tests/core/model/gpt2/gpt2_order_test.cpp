// What a run relies on beside the promises of every model (gpt2_conformance_test.cpp): the same
// bits with either way of keeping activations, a loss that is evaluate's, errors where they belong.

#include <catch2/catch.hpp>
#include <cmath>

#include "base/float16.h"
#include "tests/core/model/gpt2/batches.h"

namespace sluice::model {
namespace {

using Catch::Matchers::Contains;

const Batch kBatch(3, 20, 97, 5);

TEST_CASE("recomputed activations give the same bits as kept ones") {
  for (const std::int64_t rows : {3, 60}) {  // 60 x 20: more than the head takes at once
    const Batch batch(rows, 20, 97, 5);
    ModelOptions options{.batch = rows, .sequence = 20};
    Gpt2Run keep(kSmall, options);
    options.activations = Activations::recompute;
    Gpt2Run recompute(kSmall, options);
    CHECK(keep.step_16bit(batch, 1) == recompute.step_16bit(batch, 1));
    CHECK(keep.model->loss(0) == recompute.model->loss(0));
  }
  ModelOptions options{.batch = 3, .sequence = 20, .micro_step_count = 2};
  Gpt2Run keep(kSmall, options);
  options.activations = Activations::recompute;
  Gpt2Run recompute(kSmall, options);
  const Batch other(3, 20, 97, 6);
  CHECK(keep.step({kBatch, other}, 0.5) == recompute.step({kBatch, other}, 0.5));
}

TEST_CASE("a fresh model's loss is about the logarithm of its vocabulary") {
  const ModelShape bytes{"bytes", 2, 64, 2, 32, 256};
  Gpt2Run run(bytes, {.batch = 4, .sequence = 32});
  run.step_16bit(Batch(4, 32, 256, 3), 1);
  CHECK(std::abs(run.model->loss(0) - std::log(256.0)) < 0.1);
}

TEST_CASE("evaluate gives forward's loss and leaves a step alone") {
  Gpt2Run run(kSmall, {.batch = 3, .sequence = 20});
  const std::vector<float> gradient = run.step_16bit(kBatch, 1);
  const Batch other(1, 7, 97, 8);
  const double step_loss = run.model->loss(0);
  const Result<double> loss = evaluate(*run.model, kBatch.view());
  REQUIRE(loss.ok());
  CHECK(*loss == step_loss);
  const Result<double> other_loss = evaluate(*run.model, other.view());
  REQUIRE(other_loss.ok());
  CHECK(*other_loss != *loss);
  CHECK(run.step_16bit(kBatch, 1) == gradient);
}

TEST_CASE("parameters are read where the offload writes them") {
  Gpt2Run run(kSmall, {.batch = 3, .sequence = 20});
  CHECK(run.model->parameters().values_16bit().data() == run.parameters.data());
  const Result<double> before = evaluate(*run.model, kBatch.view());
  for (std::uint16_t& value : run.parameters) value = bf16_from_float(0);
  const Result<double> after = evaluate(*run.model, kBatch.view());
  REQUIRE(before.ok());
  REQUIRE(after.ok());
  CHECK(*before != *after);
  CHECK(*after == Approx(std::log(97.0)));  // all logits are zero
}

TEST_CASE("options that cannot be are errors that say what can") {
  std::vector<std::uint16_t> parameters = make_parameters(kSmall, Float16Kind::bf16);
  const auto message = [&](const ModelOptions& options) {
    const auto made =
        host_factory().make(kSmall, options, ParameterSpan(parameters, Float16Kind::bf16));
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().code() == ErrorCode::config);
    return made.error().message();
  };
  CHECK_THAT(message({.sequence = 25}), Contains("25") && Contains("24"));
  CHECK_THAT(message({.batch = 0, .sequence = 20}), Contains("batch = 0"));
  CHECK_THAT(message({.sequence = 0}), Contains("sequence = 0"));
  CHECK_THAT(message({.sequence = 20, .micro_step_count = 0}), Contains("0 micro-batches"));
  CHECK_THAT(message({.sequence = 20, .thread_count = -1}), Contains("-1 threads"));
}

TEST_CASE("batches that do not fit the model are errors") {
  Gpt2Run run(kSmall, {.batch = 3, .sequence = 20});
  const auto message = [&](const Batch& batch) {
    const Status status = run.model->set_batch(0, batch.view(), BatchUse::training);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code() == ErrorCode::config);
    CHECK_FALSE(evaluate(*run.model, batch.view()).ok());
    return status.error().message();
  };
  CHECK_THAT(message(Batch(4, 20, 97, 1)), Contains("4 x 20") && Contains("3 x 20"));
  CHECK_THAT(message(Batch(3, 21, 97, 1)), Contains("3 x 21"));
  Batch wrong = kBatch;
  wrong.inputs[7] = 97;
  CHECK_THAT(message(wrong), Contains("token 97") && Contains("vocabulary is 97"));
  wrong = kBatch;
  wrong.targets[7] = -1;
  CHECK_THAT(message(wrong), Contains("token -1"));
}

}  // namespace
}  // namespace sluice::model
