#pragma once
// The flat 16-bit array seen as tensors, layer by layer. They are views: what is written into the
// array is what the next forward reads.
//
// Thread contract: plain data.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/flat_layout.h"

namespace sluice::model {

using LayerViews = std::span<const at::Tensor>;  // a layer's tensors in flat order

struct FlatViews {
  std::vector<std::vector<at::Tensor>> layers;  // index = LayerId

  LayerViews of(LayerId layer) const { return layers[index_of(layer)]; }
  // [vocabulary, hidden]: the embedding's first, and the head's output table as well.
  const at::Tensor& token_table() const { return layers.front().front(); }
};

// The layer's tensors in `views` from now on are those of its `flat` parameters. Those of blocks
// and head ask autograd for gradients; the embedding's do not, since their gradients are made by
// hand.
void view_layer(const FlatLayout& layout, LayerId layer, const at::Tensor& flat, FlatViews& views);

// All layers', of an array in host memory.
FlatViews view_flat(const FlatLayout& layout, at::ScalarType dtype,
                    std::span<std::uint16_t> parameters);

}  // namespace sluice::model
