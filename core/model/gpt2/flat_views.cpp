#include "core/model/gpt2/flat_views.h"

#include <ATen/ops/from_blob.h>

#include "core/model/torch/check.h"

namespace sluice::model {

namespace {

// The layer's tensors in flat order, each to be asked for by the end of its name.
class LayerTensors {
 public:
  LayerTensors(const FlatLayout& layout, LayerId layer, const at::Tensor& flat)
      : layout_(layout), layer_(layout.layer(layer)), flat_(flat) {
    CHECK_EQ(flat.numel(), layer_.count);
    while (layout.tensors[next_].layer != layer) ++next_;
  }

  at::Tensor take(const char* name_end) {
    const TensorInfo& info = layout_.tensors[next_++];
    CHECK(info.name.ends_with(name_end));
    done_ += info.count;
    return flat_.narrow(0, info.first - layer_.first, info.count).view(info.shape).detach();
  }
  at::Tensor take_watched(const char* name_end) { return take(name_end).set_requires_grad(true); }
  void finish() const { CHECK_EQ(done_, layer_.count); }

 private:
  const FlatLayout& layout_;
  const LayerRange& layer_;
  const at::Tensor& flat_;
  std::size_t next_ = 0;
  std::int64_t done_ = 0;
};

}  // namespace

void view_layer(const FlatLayout& layout, LayerId layer, const at::Tensor& flat, FlatViews& views) {
  static constexpr std::array<const char*, kBlockTensorCount> kBlockNames = {
      ".ln_1.weight",        ".ln_1.bias",        ".attn.c_attn.weight", ".attn.c_attn.bias",
      ".attn.c_proj.weight", ".attn.c_proj.bias", ".ln_2.weight",        ".ln_2.bias",
      ".mlp.c_fc.weight",    ".mlp.c_fc.bias",    ".mlp.c_proj.weight",  ".mlp.c_proj.bias"};
  views.blocks.resize(layout.layers.size() - 2);
  LayerTensors tensors(layout, layer, flat);
  const std::int32_t index = index_of(layer);
  if (index == 0) {
    views.token_table = tensors.take("wte.weight");
    views.position_table = tensors.take("wpe.weight");
  } else if (index == layout.layer_count() - 1) {
    views.final_norm[0] = tensors.take_watched("ln_f.weight");
    views.final_norm[1] = tensors.take_watched("ln_f.bias");
  } else {
    BlockTensors& block = views.blocks[static_cast<std::size_t>(index - 1)];
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = tensors.take_watched(kBlockNames[i]);
  }
  tensors.finish();
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
