#include "core/model/torch/flat_views.h"

#include <ATen/ops/from_blob.h>

#include "core/model/torch/check.h"
#include "core/model/torch/dtype.h"

namespace sluice::model {
namespace {

bool ends_so(std::string_view name, std::string_view end) {
  return name.ends_with(end) &&
         (name.size() == end.size() || name[name.size() - end.size() - 1] == '.');
}

}  // namespace

const at::Tensor& LayerViews::operator[](std::string_view name) const {
  std::size_t i = 0;
  while (i < names_.size() && !ends_so(names_[i], name)) ++i;
  CHECK_LT(i, names_.size());
  return tensors_[i];
}

void view_layer(const FlatLayout& layout, LayerId layer, const at::Tensor& flat, FlatViews& views) {
  const LayerRange& range = layout.layer(layer);
  CHECK_EQ(flat.numel(), range.count);
  views.layers.resize(layout.layers.size());
  LayerViews fresh;
  for (const TensorInfo& info : layout.tensors) {
    if (info.layer != layer) continue;
    const at::Tensor view = flat.narrow(0, info.first - range.first, info.count).view(info.shape);
    fresh.tensors_.push_back(view.detach().set_requires_grad(index_of(layer) > 0));
    fresh.names_.push_back(info.name);
  }
  views.layers[index_of(layer)] = std::move(fresh);
}

FlatViews view_flat(const FlatLayout& layout, const ParameterSpan& parameters) {
  CHECK_EQ(parameters.size(), layout.parameter_count);
  FlatViews views;
  for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
    const LayerRange& range = layout.layer(LayerId{l});
    view_layer(layout, LayerId{l},
               at::from_blob(parameters.subspan(range.first, range.count).data(), {range.count},
                             dtype_of(parameters.kind())),
               views);
  }
  return views;
}

}  // namespace sluice::model
