#include "core/compress/sparse_update.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>

#include "tests/core/compress/gradients.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::compress {
namespace {

using optimizer::bits_of;
using optimizer::GradientKind;
using optimizer::normal_floats;
using optimizer::UpdateArrays;

struct State {
  std::vector<float> master_weights, exp_avg, exp_avg_sq;
  std::vector<std::uint16_t> parameters;

  UpdateArrays arrays() {
    return {.element_count = static_cast<std::int64_t>(master_weights.size()),
            .state = {master_weights.data(), exp_avg.data(), exp_avg_sq.data()},
            .parameters = parameters.data()};
  }
  bool same_bits(const State& other) const {
    return bits_of(master_weights) == bits_of(other.master_weights) &&
           bits_of(exp_avg) == bits_of(other.exp_avg) &&
           bits_of(exp_avg_sq) == bits_of(other.exp_avg_sq) && parameters == other.parameters;
  }
};

State trained_state(std::int64_t count) {
  State state{.master_weights = normal_floats(count, 0.02f, 401),
              .exp_avg = normal_floats(count, 1e-3f, 402),
              .exp_avg_sq = normal_floats(count, 1e-6f, 403),
              .parameters = std::vector<std::uint16_t>(static_cast<std::size_t>(count))};
  for (float& square : state.exp_avg_sq) square = std::abs(square);
  return state;
}

const optimizer::UpdateScalars kScalars = optimizer::update_scalars({}, 7, 1.0 / 16);

State dense_update(const SparseGradientView& view) {
  State state = trained_state(view.element_count);
  std::vector<float> gradient(static_cast<std::size_t>(view.element_count));
  for (std::int64_t tile = 0; tile < view.tile_count(); ++tile)
    scatter_tile(view, tile, gradient.data() + tile * kTileElements);
  UpdateArrays arrays = state.arrays();
  arrays.gradient = gradient.data();
  optimizer::update(kScalars, arrays);
  return state;
}

TEST_CASE("the fused update has the bits of the dense update of the decompressed gradient") {
  const auto buffer = std::make_unique<TileBuffer>();
  for (const std::int64_t count : {0, 17, 16'385, 40'001}) {
    for (const NamedGradient& gradient : gradients_of_every_shape(count, 411)) {
      for (const GradientKind kind : {GradientKind::fp32, GradientKind::bf16, GradientKind::fp16}) {
        for (const std::int64_t every : {1, 100}) {
          AlignedBytes sparse = sparse_of(gradient.values, every, kind);
          const auto view = open_sparse_gradient(sparse.bytes(), count);
          REQUIRE(view.ok());
          State state = trained_state(count);
          // In two parts, as two threads would do it.
          const std::int64_t half = view->tile_count() / 2;
          sparse_update(kScalars, state.arrays(), *view, 0, half, *buffer);
          sparse_update(kScalars, state.arrays(), *view, half, view->tile_count() - half, *buffer);
          CAPTURE(count, gradient.name, kind, every);
          CHECK(state.same_bits(dense_update(*view)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace sluice::compress
