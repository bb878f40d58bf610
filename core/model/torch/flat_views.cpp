#include "core/model/torch/flat_views.h"

#include <ATen/ops/from_blob.h>

#include "core/model/torch/check.h"

namespace sluice::model {

void view_layer(const FlatLayout& layout, LayerId layer, const at::Tensor& flat, FlatViews& views) {
  const LayerRange& range = layout.layer(layer);
  CHECK_EQ(flat.numel(), range.count);
  views.layers.resize(layout.layers.size());
  std::vector<at::Tensor>& tensors = views.layers[index_of(layer)];
  tensors.clear();
  for (const TensorInfo& info : layout.tensors) {
    if (info.layer != layer) continue;
    const at::Tensor view = flat.narrow(0, info.first - range.first, info.count).view(info.shape);
    tensors.push_back(view.detach().set_requires_grad(index_of(layer) > 0));
  }
}

FlatViews view_flat(const FlatLayout& layout, at::ScalarType dtype,
                    std::span<std::uint16_t> parameters) {
  CHECK_EQ(static_cast<std::int64_t>(parameters.size()), layout.parameter_count);
  FlatViews views;
  for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
    const LayerRange& range = layout.layer(LayerId{l});
    view_layer(layout, LayerId{l},
               at::from_blob(parameters.data() + range.first, {range.count}, dtype), views);
  }
  return views;
}

}  // namespace sluice::model
