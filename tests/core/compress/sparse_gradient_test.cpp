#include "core/compress/sparse_gradient.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "base/float16.h"
#include "core/compress/top_k.h"
#include "tests/core/compress/gradients.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::compress {
namespace {

using optimizer::bits_of;
using optimizer::GradientKind;

constexpr GradientKind kKinds[] = {GradientKind::fp32, GradientKind::bf16, GradientKind::fp16};

float rounded_to(GradientKind kind, float value) {
  switch (kind) {
    case GradientKind::bf16:
      return float_from_bf16(bf16_from_float(value));
    case GradientKind::fp16:
      return float_from_fp16(fp16_from_float(value));
    case GradientKind::fp32:
      break;
  }
  return value;
}

// Every tile into its place of a whole gradient, in the order of the tiles or each by its number.
std::vector<float> decompressed(const SparseGradientView& view, bool by_number) {
  std::vector<float> dense(static_cast<std::size_t>(view.element_count), -1.0f);
  for (std::int64_t tile = 0; tile < view.tile_count(); ++tile) {
    float* out = dense.data() + tile * kTileElements;
    if (by_number) {
      scatter_tile(view, tile, out);
    } else {
      SparseTile cursor = view.tile_at(0);
      while (cursor.tile < tile) cursor = view.next(cursor);
      std::fill_n(out, view.elements_in(tile), 0.0f);
      scatter_onto_zeros(view, cursor, out);
    }
  }
  return dense;
}

TEST_CASE("the size of a sparse gradient follows the formula of the format's page") {
  CHECK(sparse_gradient_bytes(0, 0, GradientKind::fp32) == 64);
  CHECK(sparse_gradient_bytes(1, 1, GradientKind::fp32) == 64 + 64 + 64 + 64);
  CHECK(sparse_gradient_bytes(16 << 20, 167'773, GradientKind::fp32) ==
        64 + 4 * 1024 + 335'552 + 671'104);  // 6.03 bytes a kept element
  CHECK(sparse_gradient_bytes(16 << 20, 167'773, GradientKind::bf16) ==
        64 + 4 * 1024 + 335'552 + 335'552);
}

TEST_CASE("what was kept comes back, everything else is zero") {
  for (const std::int64_t count : {0, 1, 17, 16'383, 16'384, 16'385, 100'001}) {
    for (const NamedGradient& gradient : gradients_of_every_shape(count, 201)) {
      const std::int64_t k = kept_count(0.01, count);
      Kept kept(k);
      top_k_reference(gradient.values, k, kept.room());
      for (const GradientKind kind : kKinds) {
        AlignedBytes sparse(sparse_gradient_bytes(count, k, kind));
        CHECK(encode_sparse_gradient(kept.elements(k), count, kind, sparse.bytes()) ==
              static_cast<std::int64_t>(sparse.bytes().size()));
        const auto view = open_sparse_gradient(sparse.bytes(), count);
        CAPTURE(count, gradient.name, kind, view.ok() ? "" : view.error().message());
        REQUIRE(view.ok());
        CHECK(view->kept_count() == k);

        std::vector<float> expected(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i)
          expected[kept.indices[i]] = rounded_to(kind, kept.values[i]);
        CHECK(bits_of(decompressed(*view, true)) == bits_of(expected));
        CHECK(bits_of(decompressed(*view, false)) == bits_of(expected));
      }
    }
  }
}

TEST_CASE("density 1 reproduces the dense gradient bit by bit") {
  for (const std::int64_t count : {1, 16'384, 40'001}) {
    for (const NamedGradient& gradient : gradients_of_every_shape(count, 211)) {
      const std::int64_t k = kept_count(1, count);
      TopKSelector selector({.kept_capacity = k, .slice_count = 2});
      Kept kept(k);
      top_k(gradient.values, k, 2, selector, kept.room());
      AlignedBytes sparse(sparse_gradient_bytes(count, k, GradientKind::fp32));
      encode_sparse_gradient(kept.elements(k), count, GradientKind::fp32, sparse.bytes());
      const auto view = open_sparse_gradient(sparse.bytes(), count);
      REQUIRE(view.ok());
      CAPTURE(count, gradient.name);
      CHECK(bits_of(decompressed(*view, true)) == bits_of(gradient.values));
    }
  }
}

TEST_CASE("the same elements give the same bytes, whatever lay in the buffer") {
  const std::vector<float> gradient = optimizer::normal_floats(20'000, 1, 221);
  AlignedBytes clean = sparse_of(gradient, 7, GradientKind::bf16);
  const auto size = static_cast<std::int64_t>(clean.bytes().size());
  AlignedBytes used(std::vector<std::byte>(clean.bytes().size() + 4096, std::byte{0xff}));
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
  for (std::uint32_t i = 0; i < 20'000; i += 7) {
    indices.push_back(i);
    values.push_back(gradient[i]);
  }
  CHECK(encode_sparse_gradient({.indices = indices, .values = values}, 20'000, GradientKind::bf16,
                               used.bytes()) == size);
  const auto written = used.bytes().first(clean.bytes().size());
  CHECK(std::equal(written.begin(), written.end(), clean.bytes().begin()));
  CHECK(used.bytes()[clean.bytes().size()] == std::byte{0xff});
  CHECK(open_sparse_gradient(used.bytes(), 20'000).ok());  // what follows is ignored
}

}  // namespace
}  // namespace sluice::compress
