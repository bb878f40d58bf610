#pragma once
// The flat array of parameters seen as tensors, layer by layer. They are views: what is written
// into the array is what the next forward reads.
//
// Thread contract: plain data.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/parameter_span.h"
#include "core/model/flat_layout.h"

namespace sluice::model {

// A layer's tensors.
class LayerViews {
 public:
  // The one whose name ends so, behind a dot or as a whole; there must be one.
  const at::Tensor& operator[](std::string_view name) const;
  std::span<const at::Tensor> in_flat_order() const { return tensors_; }

 private:
  friend void view_layer(const FlatLayout&, LayerId, const at::Tensor&, struct FlatViews&);

  std::vector<at::Tensor> tensors_;
  std::vector<std::string_view> names_;  // in the layout
};

struct FlatViews {
  std::vector<LayerViews> layers;          // index = LayerId
  std::vector<at::Tensor> constants = {};  // that layers read beside parameters

  const LayerViews& of(LayerId layer) const { return layers[index_of(layer)]; }
  const LayerViews& embedding() const { return layers.front(); }
  const LayerViews& head() const { return layers.back(); }
};

// The layer's tensors in `views` from now on are those of its `flat` parameters. Those of blocks
// and head ask autograd for gradients; the embedding's do not, since their gradients are made by
// hand. The layout outlives the views.
void view_layer(const FlatLayout& layout, LayerId layer, const at::Tensor& flat, FlatViews& views);

// All layers', of an array in host memory.
FlatViews view_flat(const FlatLayout& layout, const ParameterSpan& parameters);

}  // namespace sluice::model
