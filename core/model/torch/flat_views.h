#pragma once
// The flat array of parameters seen as tensors, layer by layer. They are views: what is written
// into the array is what the next forward reads.
//
// Thread contract: plain data.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parameter_span.h"
#include "core/model/flat_layout.h"

namespace sluice::model {

// A layer's tensors: those that are trained, and where these are adapters, those of the base.
class LayerViews {
 public:
  // The one whose name ends so, behind a dot or as a whole; there must be one.
  const at::Tensor& operator[](std::string_view name) const;
  // Null: there is none.
  const at::Tensor* find(std::string_view name) const;
  // Those that are trained.
  std::span<const at::Tensor> in_flat_order() const { return trained_.tensors; }
  // On what adapters add (Lora::scale()).
  double adapter_scale() const { return adapter_scale_; }

 private:
  friend struct FlatViews;
  struct Named {
    const at::Tensor* find(std::string_view name) const;

    std::vector<at::Tensor> tensors;
    std::vector<std::string> names;
  };

  Named trained_;
  Named base_;
  double adapter_scale_ = 0;
};

struct FlatViews {
  // The layer's tensors from now on are those of its `flat` parameters. Those of blocks and head
  // ask autograd for gradients; the embedding's do not, since their gradients are made by hand.
  void view_layer(const FlatLayout& layout, LayerId layer, const at::Tensor& flat);
  // The same of all layers of the base, which asks for none, in one tensor of all parameters.
  void view_base(const FlatLayout& layout, const at::Tensor& flat, double adapter_scale);
  // The same of one layer, in a tensor of that layer's.
  void view_base_layer(const FlatLayout& layout, LayerId layer, const at::Tensor& flat,
                       double adapter_scale);

  std::vector<LayerViews> layers;          // index = LayerId
  std::vector<at::Tensor> constants = {};  // that layers read beside parameters

  const LayerViews& of(LayerId layer) const { return layers[index_of(layer)]; }
  const LayerViews& embedding() const { return layers.front(); }
};

// An array in host memory as one tensor.
at::Tensor tensor_of(const ParameterSpan& parameters);

// All layers', of an array in host memory.
FlatViews view_flat(const FlatLayout& layout, const ParameterSpan& parameters);

}  // namespace sluice::model
