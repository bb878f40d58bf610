#include "core/model/gpt2/flat_views.h"

#include <ATen/ops/from_blob.h>

#include "core/model/gpt2/check.h"

namespace sluice::model {

FlatViews view_flat(const FlatLayout& layout, at::ScalarType dtype,
                    std::span<std::uint16_t> parameters) {
  CHECK_EQ(static_cast<std::int64_t>(parameters.size()), layout.parameter_count);
  std::size_t next = 0;
  const auto take = [&](const char* name_end) {
    const TensorInfo& info = layout.tensors[next++];
    CHECK(info.name.ends_with(name_end));
    return at::from_blob(parameters.data() + info.first, info.shape, dtype);
  };

  FlatViews views;
  views.token_table = take("wte.weight");
  views.position_table = take("wpe.weight");
  static constexpr std::array<const char*, kBlockTensorCount> kBlockNames = {
      ".ln_1.weight",        ".ln_1.bias",        ".attn.c_attn.weight", ".attn.c_attn.bias",
      ".attn.c_proj.weight", ".attn.c_proj.bias", ".ln_2.weight",        ".ln_2.bias",
      ".mlp.c_fc.weight",    ".mlp.c_fc.bias",    ".mlp.c_proj.weight",  ".mlp.c_proj.bias"};
  views.blocks.resize(layout.layers.size() - 2);
  for (BlockTensors& block : views.blocks) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      block[i] = take(kBlockNames[i]).set_requires_grad(true);
    }
  }
  views.final_norm[0] = take("ln_f.weight").set_requires_grad(true);
  views.final_norm[1] = take("ln_f.bias").set_requires_grad(true);
  CHECK_EQ(next, layout.tensors.size());
  return views;
}

}  // namespace sluice::model
