// Dropout by counter: which values stay, attention whose weights are dropped, and GPT-2's gradients
// against the plain one's, however its steps are cut and whatever it keeps.

#include "core/model/torch/dropout.h"

#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/gpt2/plain_gpt2.h"
#include "tests/core/model/gradient_distance.h"
#include "tests/core/model/plain_dropout.h"

namespace sluice::model {
namespace {

at::Tensor keys(std::vector<std::int64_t> numbers) { return at::tensor(numbers, at::kLong); }

TEST_CASE("a loop, operations of libtorch and a plain function drop the same values") {
  const std::vector<std::int64_t> windows = {0, 7, 0x89abcdef, 0xffffffff};
  const DropPlace place{.share = 0.3, .layer = 5, .in_layer = 2};
  // The second range passes the largest 32-bit number with a sign.
  const DropRange range = GENERATE(DropRange{1, 3, 1000, 500}, DropRange{0, 4, 0x7fffff00, 600});
  const Dropout dropout(keys(windows));
  const at::Tensor loop = dropout.stays(range, place);
  CHECK(at::equal(loop, dropout.stays_by_tensors(range, place)));
  for (std::int64_t w = 0; w < range.windows; ++w) {
    const auto key =
        static_cast<std::uint32_t>(windows[static_cast<std::size_t>(range.first_window + w)]);
    for (std::int64_t i = 0; i < range.count; ++i) {
      const bool stays = plain_stays(key, 5, 2, 0.3, static_cast<std::uint32_t>(range.first + i));
      REQUIRE(loop[w][i].item<bool>() == stays);
    }
  }
}

TEST_CASE("the share that is dropped is the share that is asked for, each by itself") {
  constexpr std::int64_t kCount = 200'000;
  const Dropout dropout(keys({11, 12}));
  const auto dropped = [&](double share, std::int64_t layer, std::uint32_t in_layer) {
    return dropout.stays({0, 2, 0, kCount}, {share, layer, in_layer}).logical_not().to(at::kFloat);
  };
  const double share = GENERATE(0.02, 0.1, 0.5);
  // Standard deviations of a mean of independent ones.
  const double deviation = std::sqrt(share * (1 - share) / kCount);
  const double of_both = std::sqrt(share * share * (1 - share * share) / kCount);
  const at::Tensor here = dropped(share, 1, 0);
  CHECK(std::abs(here[0].mean().item<double>() - share) < 5 * deviation);
  const std::vector<at::Tensor> others = {here[1], dropped(share, 1, 1)[0], dropped(share, 2, 0)[0],
                                          here[0].roll(1)};
  for (const at::Tensor& other : others) {
    CHECK(std::abs((here[0] * other).mean().item<double>() - share * share) < 5 * of_both);
  }
}

TEST_CASE("rows that are dropped give their gradients where they stay") {
  const Dropout dropout(keys({3, 4}));
  const DropPlace place{.share = 0.25, .layer = 1, .in_layer = 1};
  at::manual_seed(7);
  const at::Tensor rows = at::randn({2 * 5, 8}).set_requires_grad(true);
  const at::Tensor result = dropout.of_rows(rows, place);
  result.backward(at::ones_like(result));
  const at::Tensor factors =
      dropout.stays({0, 2, 0, 40}, place).view({10, 8}).to(at::kFloat) / 0.75;
  CHECK(at::allclose(result, rows * factors));
  CHECK(at::allclose(rows.grad(), factors));
  CHECK(Dropout().of_rows(rows, place).is_same(rows));
}

TEST_CASE("attention whose weights are dropped has plain attention's gradients") {
  constexpr std::int64_t kHeads = 3, kSequence = 7, kWidth = 4;
  const WindowShape window{2, kSequence};
  const bool looks_back_only = GENERATE(true, false);
  const bool apart = GENERATE(true, false);
  const Dropout dropout(keys({5, 9}));
  const DropPlace place{.share = 0.4, .layer = 3, .in_layer = 0};
  at::manual_seed(7);
  const auto leaf = [&] {
    return at::randn({window.tokens(), kHeads * kWidth}).set_requires_grad(true);
  };
  std::vector<at::Tensor> ours = {leaf(), leaf(), leaf()};
  std::vector<at::Tensor> plain;
  for (const at::Tensor& one : ours) plain.push_back(one.detach().clone().set_requires_grad(true));
  const at::Tensor direction = at::randn({window.tokens(), kHeads * kWidth});

  // The documents' numbers are those of their first tokens.
  const at::Tensor documents =
      apart ? at::tensor(std::vector<std::int64_t>{0, 0, 0, 3, 3, 3, 3, 7, 8, 8, 8, 8, 8, 8})
            : at::Tensor();
  const at::Tensor result =
      dropped_attention(ours[0], ours[1], ours[2], window, kHeads,
                        looks_back_only ? Sees::back : Sees::all, documents, dropout, place);
  const auto heads = [&](const at::Tensor& rows) {
    return rows.view({2, kSequence, kHeads, kWidth}).transpose(1, 2);
  };
  at::Tensor scores = heads(plain[0]).matmul(heads(plain[1]).transpose(2, 3)) / 2.0;
  if (looks_back_only) {
    scores = scores.masked_fill(at::ones({kSequence, kSequence}).triu(1) > 0, -INFINITY);
  }
  if (apart) {
    const at::Tensor of_window = documents.view({2, 1, kSequence});
    scores = scores.masked_fill(of_window.unsqueeze(3).ne(of_window.unsqueeze(2)), -INFINITY);
  }
  const at::Tensor factors = dropout.stays({0, 2, 0, kHeads * kSequence * kSequence}, place)
                                 .view(scores.sizes())
                                 .to(at::kFloat) /
                             0.6;
  const at::Tensor expected =
      (scores.softmax(-1) * factors).matmul(heads(plain[2])).transpose(1, 2).reshape_as(result);
  CHECK(at::allclose(result, expected, 1e-5, 1e-6));
  result.backward(direction);
  expected.backward(direction);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(at::allclose(ours[i].grad(), plain[i].grad(), 1e-4, 1e-5));
}

// ---- GPT-2

ModelShape dropping() {
  ModelShape shape = kSmall;
  shape.dropout = {.embedding = 0.1, .attention = 0.2, .rows = 0.15};
  return shape;
}

Batch batch_of(std::int64_t windows, std::uint64_t seed) {
  Batch batch(windows, 20, kSmall.vocabulary, seed);
  for (std::int64_t w = 0; w < windows; ++w)
    batch.drop_keys.push_back(static_cast<std::uint32_t>(77 * seed + 5 * w));
  return batch;
}

constexpr double kDropWeightScale = 4;

TEST_CASE("gradients under dropout are those of plain GPT-2") {
  const ModelShape shape = dropping();
  const Batch batch = batch_of(3, 5);
  Gpt2Run run(shape, {.batch = 3, .sequence = 20, .compute = ParameterKind::fp32},
              kDropWeightScale);
  const std::vector<float> gradient = run.step({batch}, 1);
  const PlainResult plain = plain_gpt2(shape, run.parameters_fp32, batch.view());
  CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(1e-6));
  check_tensors(shape, gradient, plain.gradient, 1e-4);
  // It must matter, or the lines above prove nothing.
  CHECK(distance(gradient, plain_gpt2(kSmall, run.parameters_fp32, batch.view()).gradient) > 0.1);

  Gpt2Run narrow(shape, {.batch = 3, .sequence = 20}, kDropWeightScale);
  const PlainResult of_16_bits =
      plain_gpt2(shape, Float16Kind::bf16, narrow.parameters, batch.view());
  check_tensors(shape, narrow.step_16bit(batch, 1), of_16_bits.gradient, 0.03);
}

TEST_CASE("layers that are computed again drop the same values") {
  const ModelShape shape = dropping();
  const Batch batch = batch_of(3, 6);
  Gpt2Run kept(shape, {.batch = 3, .sequence = 20}, kDropWeightScale);
  Gpt2Run again(shape, {.batch = 3, .sequence = 20, .activations = Activations::recompute},
                kDropWeightScale);
  const std::vector<float> gradient = kept.step_16bit(batch, 1);
  CHECK(gradient == again.step_16bit(batch, 1));
  CHECK(gradient == kept.step_16bit(batch, 1));
  CHECK(gradient != kept.step_16bit(batch_of(3, 7), 1));
}

TEST_CASE("micro-batches drop what the whole batch drops") {
  const ModelShape shape = dropping();
  const Batch whole = batch_of(2, 8);
  std::vector<Batch> micro_batches;
  for (std::int64_t w = 0; w < 2; ++w) {
    Batch one(1, 20, shape.vocabulary, 1);
    one.inputs.assign(whole.inputs.begin() + w * 20, whole.inputs.begin() + (w + 1) * 20);
    one.targets.assign(whole.targets.begin() + w * 20, whole.targets.begin() + (w + 1) * 20);
    one.drop_keys = {whole.drop_keys[static_cast<std::size_t>(w)]};
    micro_batches.push_back(one);
  }
  const ModelOptions options{.batch = 2, .sequence = 20, .compute = ParameterKind::fp32};
  Gpt2Run in_one(shape, options, kDropWeightScale);
  Gpt2Run in_two(
      shape, {.batch = 1, .sequence = 20, .micro_step_count = 2, .compute = ParameterKind::fp32},
      kDropWeightScale);
  CHECK(distance(in_two.step(micro_batches, 0.5), in_one.step({whole}, 1)) < 1e-5);
}

TEST_CASE("a validation drops nothing") {
  const Batch batch = batch_of(2, 9);
  Gpt2Run dropping_run(dropping(), {.batch = 2, .sequence = 20});
  Gpt2Run plain_run(kSmall, {.batch = 2, .sequence = 20});
  CHECK(*evaluate(*dropping_run.model, batch.view()) == *evaluate(*plain_run.model, batch.view()));
}

}  // namespace
}  // namespace sluice::model
