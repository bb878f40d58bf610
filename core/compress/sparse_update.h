#pragma once
// An update with a sparse gradient, tile by tile: the tile is decompressed into a buffer that stays
// in the second-level cache, and the dense kernel updates that slice of the state. Elements that
// were not kept have the gradient 0; what the rule does to their state it does all the same. So the
// result has the bits of the dense update with the decompressed gradient.
//
// Thread contract: free functions, safe on disjoint tiles with a buffer each.

#include <array>
#include <cstdint>

#include "core/compress/sparse_gradient.h"
#include "core/optimizer/split_update.h"

namespace sluice::compress {

// The gradient that a tile is decompressed into. All 0 before and after each call: at a density of
// a hundredth, clearing what was written costs a fraction of filling it with zeros.
struct TileBuffer {
  alignas(64) std::array<float, kTileElements> gradient{};
};

// One tile. `arrays` are the whole subgroup's; their gradient and its kind are not looked at.
void sparse_update_tile(const optimizer::UpdateScalars& scalars,
                        const optimizer::UpdateArrays& arrays, const SparseGradientView& view,
                        const SparseTile& tile, TileBuffer& buffer);
void sparse_update_tile(const optimizer::UpdateScalars& scalars,
                        const optimizer::SplitArrays& arrays, const SparseGradientView& view,
                        const SparseTile& tile, TileBuffer& buffer);

// The tiles [first_tile, first_tile + tile_count).
void sparse_update(const optimizer::UpdateScalars& scalars, const optimizer::UpdateArrays& arrays,
                   const SparseGradientView& view, std::int64_t first_tile, std::int64_t tile_count,
                   TileBuffer& buffer);

}  // namespace sluice::compress
