#include "core/compress/sparse_update.h"

#include "base/check.h"

namespace sluice::compress {

namespace {

template <typename Arrays>
void update_tile(const optimizer::UpdateScalars& scalars, const Arrays& arrays,
                 const SparseGradientView& view, const SparseTile& tile, TileBuffer& buffer) {
  scatter_onto_zeros(view, tile, buffer.gradient.data());
  Arrays part = optimizer::slice(arrays, tile.tile * kTileElements, view.elements_in(tile.tile));
  part.gradient = buffer.gradient.data();
  part.gradient_kind = optimizer::GradientKind::fp32;
  optimizer::update(scalars, part);
  clear_scattered(view, tile, buffer.gradient.data());
}

}  // namespace

void sparse_update_tile(const optimizer::UpdateScalars& scalars,
                        const optimizer::UpdateArrays& arrays, const SparseGradientView& view,
                        const SparseTile& tile, TileBuffer& buffer) {
  CHECK_EQ(arrays.element_count, view.element_count);
  update_tile(scalars, arrays, view, tile, buffer);
}

void sparse_update_tile(const optimizer::UpdateScalars& scalars,
                        const optimizer::SplitArrays& arrays, const SparseGradientView& view,
                        const SparseTile& tile, TileBuffer& buffer) {
  CHECK_EQ(arrays.state.element_count, view.element_count);
  update_tile(scalars, arrays, view, tile, buffer);
}

void sparse_update(const optimizer::UpdateScalars& scalars, const optimizer::UpdateArrays& arrays,
                   const SparseGradientView& view, std::int64_t first_tile, std::int64_t tile_count,
                   TileBuffer& buffer) {
  CHECK_GE(first_tile, 0);
  CHECK_GE(tile_count, 0);
  CHECK_LE(first_tile, view.tile_count() - tile_count);
  if (tile_count == 0) return;
  SparseTile tile = view.tile_at(first_tile);
  sparse_update_tile(scalars, arrays, view, tile, buffer);
  for (std::int64_t k = 1; k < tile_count; ++k) {
    tile = view.next(tile);
    sparse_update_tile(scalars, arrays, view, tile, buffer);
  }
}

}  // namespace sluice::compress
