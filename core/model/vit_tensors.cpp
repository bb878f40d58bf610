// ViT: an image's patches, projected, behind a class token; the class is read off that token.
// There is no pooler, as in Hugging Face's classifier.

#include "core/model/family_layouts.h"
#include "core/model/layout_builder.h"

namespace sluice::model {
namespace {

void add_vit_block(LayoutBuilder& builder, const std::string& layer, std::int64_t hidden) {
  builder.begin_layer(layer);
  for (const char* part : {"query", "key", "value"}) {
    builder.linear(layer + ".attention.attention." + part, hidden, hidden);
  }
  builder.linear(layer + ".attention.output.dense", hidden, hidden);
  builder.linear(layer + ".intermediate.dense", hidden, 4 * hidden);
  builder.linear(layer + ".output.dense", 4 * hidden, hidden);
  builder.layer_norm(layer + ".layernorm_before", hidden);
  builder.layer_norm(layer + ".layernorm_after", hidden);
}

}  // namespace

FlatLayout vit_layout(const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  LayoutBuilder builder;
  builder.begin_layer("embedding");
  builder.normal("embeddings.cls_token", {1, 1, hidden});
  builder.normal("embeddings.position_embeddings", {1, shape.sequence, hidden});
  const std::string projection = "embeddings.patch_embeddings.projection";
  builder.normal(projection + ".weight", {hidden, shape.channels, shape.patch, shape.patch});
  builder.zeros(projection + ".bias", hidden);
  for (std::int64_t block = 0; block < shape.layers; ++block) {
    add_vit_block(builder, fmt::format("encoder.layer.{}", block), hidden);
  }
  builder.begin_layer("head");
  builder.layer_norm("layernorm", hidden);
  builder.linear("classifier", hidden, shape.classes);
  return builder.take();
}

}  // namespace sluice::model
