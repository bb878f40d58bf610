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

// All of a tensor; of a table that is cut, the rows that are the layer's.
at::Tensor view_of(const TensorInfo& info, const at::Tensor& flat, const LayerRange& range) {
  const std::int64_t count = elements_within(info, range);
  std::vector<std::int64_t> shape = info.shape;
  shape.front() = shape.front() * count / info.count;
  return flat.narrow(0, std::max<std::int64_t>(0, info.first - range.first), count)
      .view(shape)
      .detach();
}

}  // namespace

const at::Tensor* LayerViews::Named::find(std::string_view name) const {
  std::size_t i = 0;
  while (i < names.size() && !ends_so(names[i], name)) ++i;
  return i < names.size() ? &tensors[i] : nullptr;
}

const at::Tensor* LayerViews::find(std::string_view name) const {
  const at::Tensor* const found = trained_.find(name);
  return found != nullptr ? found : base_.find(name);
}

const at::Tensor& LayerViews::operator[](std::string_view name) const {
  const at::Tensor* const found = find(name);
  CHECK(found != nullptr);
  return *found;
}

void FlatViews::view_layer(const FlatLayout& layout, LayerId layer, const at::Tensor& flat) {
  const LayerRange& range = layout.layer(layer);
  CHECK_EQ(flat.numel(), range.count);
  layers.resize(layout.layers.size());
  LayerViews::Named fresh;
  for (const TensorInfo& info : layout.tensors) {
    if (elements_within(info, range) == 0) continue;
    fresh.tensors.push_back(view_of(info, flat, range).set_requires_grad(index_of(layer) > 0));
    fresh.names.push_back(info.name);
  }
  layers[index_of(layer)].trained_ = std::move(fresh);
}

void FlatViews::view_base(const FlatLayout& layout, const at::Tensor& flat, double adapter_scale) {
  CHECK_EQ(flat.numel(), layout.parameter_count);
  for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
    const LayerRange& range = layout.layer(LayerId{l});
    view_base_layer(layout, LayerId{l}, flat.narrow(0, range.first, range.count), adapter_scale);
  }
}

void FlatViews::view_base_layer(const FlatLayout& layout, LayerId layer, const at::Tensor& flat,
                                double adapter_scale) {
  layers.resize(layout.layers.size());
  LayerViews& views = layers[index_of(layer)];
  views.adapter_scale_ = adapter_scale;
  views.base_ = {};
  for (const TensorInfo& info : layout.tensors) {
    const LayerRange& range = layout.layer(layer);
    if (elements_within(info, range) == 0) continue;
    views.base_.tensors.push_back(view_of(info, flat, range));
    views.base_.names.push_back(info.name);
  }
}

at::Tensor tensor_of(const ParameterSpan& parameters) {
  return at::from_blob(parameters.data(), {parameters.size()}, dtype_of(parameters.kind()));
}

FlatViews view_flat(const FlatLayout& layout, const ParameterSpan& parameters) {
  CHECK_EQ(parameters.size(), layout.parameter_count);
  FlatViews views;
  for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
    const LayerRange& range = layout.layer(LayerId{l});
    views.view_layer(layout, LayerId{l}, tensor_of(parameters.subspan(range.first, range.count)));
  }
  return views;
}

}  // namespace sluice::model
