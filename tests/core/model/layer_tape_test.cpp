// The memory of a layer's backward, against numbers worked out by hand, and what the tapes of all
// families keep against their lists. tests/core/model/memory holds the sum of it to libtorch.

#include "core/model/layer_tape.h"

#include <catch2/catch.hpp>

#include "core/model/architecture.h"
#include "tests/core/model/small_shapes.h"

namespace sluice::model {
namespace {

TapeSetting ten_rows(ParameterKind precision, Products products = Products::summed_apart) {
  return {.tokens = {10, 10}, .precision = precision, .products = products};
}

TEST_CASE("a product makes its weight's gradient, then its input's") {
  LayerTape tape(ten_rows(ParameterKind::fp32));
  tape.output(tape.product(tape.input(3), 5));
  CHECK(tape.kept_bytes() == 10 * 5 * 4);
  CHECK(tape.backward_bytes().most == (3 * 5 + 10 * 3) * 4);
  CHECK(tape.backward_bytes().at_end == (3 * 5 + 10 * 3) * 4);
}

TEST_CASE("sums in fp32 of 16-bit products lie beside the gradient that they become") {
  // The weight's: 15 values in 2 bytes, then the input's, 30 of them, with 30 in 4.
  LayerTape tape(ten_rows(ParameterKind::bf16));
  tape.output(tape.product(tape.input(3), 5));
  CHECK(tape.backward_bytes().most == 15 * 2 + 30 * 2 + 30 * 4);
  // With a bias the input's gradient is the first.
  LayerTape with_bias(ten_rows(ParameterKind::bf16));
  with_bias.output(with_bias.product_plus_bias(with_bias.input(3), 5));
  CHECK(with_bias.backward_bytes().most == 30 * 2 + 30 * 4);
}

TEST_CASE("an operation lets go of what it alone kept, and of its result's gradient") {
  LayerTape tape(ten_rows(ParameterKind::fp32));
  const auto x = tape.input(3);
  const auto inner = tape.activated(x);
  tape.output(tape.activated(inner));
  const std::int64_t row = 10 * 3 * 4;
  CHECK(tape.kept_bytes() == 2 * row);
  // One gradient more, then `inner` goes; the next one, then the first goes. Input, output and the
  // output's gradient stay.
  CHECK(tape.backward_bytes().most == row);
  CHECK(tape.backward_bytes().at_end == 0);
}

TEST_CASE("what an offloaded layer kept stays until its backward has ended") {
  LayerTape tape(ten_rows(ParameterKind::fp32));
  const auto inner = tape.activated(tape.input(3));
  tape.output(tape.activated(inner));
  const BackwardBytes backward = tape.backward_bytes(LayerTape::Kept::stays);
  CHECK(backward.most == 2 * 10 * 3 * 4);
  CHECK(backward.at_end == 10 * 3 * 4);
}

TEST_CASE("what is received twice is added in place, unless somebody else holds it") {
  LayerTape tape(ten_rows(ParameterKind::fp32));
  const auto x = tape.input(3);
  tape.output(tape.sum(x, tape.activated(x)));
  const std::int64_t row = 10 * 3 * 4;
  // The output's gradient is the caller's: the sum is a third tensor beside it and the new one.
  CHECK(tape.backward_bytes().most == 2 * row);
  CHECK(tape.backward_bytes().at_end == row);

  LayerTape twice(ten_rows(ParameterKind::fp32));
  const auto y = twice.input(3);
  twice.output(twice.times(twice.activated(y), twice.activated(y)));
  CHECK(twice.backward_bytes().most == 2 * row);
  CHECK(twice.backward_bytes().at_end == -row);  // both factors have gone
}

TEST_CASE("frozen weights have no gradient, and their products keep nothing") {
  TapeSetting setting = ten_rows(ParameterKind::fp32);
  setting.trains_weights = false;
  LayerTape tape(setting);
  tape.output(tape.product(tape.product(tape.input(3), 5), 3));
  CHECK(tape.kept_bytes() == 10 * 3 * 4);
  CHECK(tape.backward_bytes().most == 2 * 10 * 4 * 4);
}

TEST_CASE("the tapes of all families keep what their lists say") {
  for (const ModelShape& shape : small_shapes()) {
    for (const ParameterKind precision : {ParameterKind::bf16, ParameterKind::fp32}) {
      CAPTURE(architecture_of(shape).name, precision == ParameterKind::bf16);
      const LayerTokens tokens{12, shape.has_decoder() ? 20 : 12};
      for (std::int32_t layer = 1; layer <= shape.layers; ++layer) {
        const LayerKind& kind = layer_kind(shape, LayerId{layer});
        LayerTape tape({.tokens = tokens, .precision = precision});
        kind.record(tape, shape);
        std::int64_t rows = 0;  // numbers a row, which tapes leave out
        for (const MadeTensor& tensor : kind.made(shape)) {
          if (tensor.use == MadeUse::statistic)
            rows += tokens.rows_of(tensor) * tensor.width * kFp32Bytes;
        }
        CHECK(tape.kept_bytes() + rows == memory_bytes(kind.made(shape), precision, tokens));
        CHECK(tape.backward_bytes().most > 0);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::model
