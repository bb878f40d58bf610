// ViT (Hugging Face's ViTForImageClassification, names without "vit."): an image's patches,
// projected, behind a class token; the class is read off that token. There is no pooler.

#include "core/model/architectures/rows.h"
#include "core/model/architectures/shared_parts.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kLargestPatchesASide = 1000;  // the setting `sequence` goes to 2^20

constexpr std::array kVitNumberKeys = {
    kLayersKey,
    kHiddenKey,
    kHeadsKey,
    NumberKey{"image", kPlace<&ModelShape::image>, 10'000},
    NumberKey{"patch", kPlace<&ModelShape::patch>, 10'000},
    NumberKey{"channels", kPlace<&ModelShape::channels>, 1'000},
    NumberKey{"classes", kPlace<&ModelShape::classes>, 100'000'000},
};

void add_vit_embedding(LayoutBuilder& builder, const std::string& /*layer*/,
                       const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  builder.normal("embeddings.cls_token", {1, 1, hidden});
  builder.normal("embeddings.position_embeddings", {1, shape.sequence, hidden});
  const std::string projection = "embeddings.patch_embeddings.projection";
  builder.normal(projection + ".weight", {hidden, shape.channels, shape.patch, shape.patch});
  builder.zeros(projection + ".bias", hidden);
}

std::vector<Product> vit_embedding_products(const ModelShape& shape) {
  return {{shape.channels * shape.patch * shape.patch, shape.hidden, Rows::patches}};
}

void add_vit_block(LayoutBuilder& builder, const std::string& layer, const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  for (const char* part : {"query", "key", "value"}) {
    builder.linear(layer + ".attention.attention." + part, hidden, hidden);
  }
  builder.linear(layer + ".attention.output.dense", hidden, hidden);
  builder.linear(layer + ".intermediate.dense", hidden, 4 * hidden);
  builder.linear(layer + ".output.dense", 4 * hidden, hidden);
  builder.layer_norm(layer + ".layernorm_before", hidden);
  builder.layer_norm(layer + ".layernorm_after", hidden);
}

void add_vit_head(LayoutBuilder& builder, const std::string& /*layer*/, const ModelShape& shape) {
  builder.layer_norm("layernorm", shape.hidden);
  builder.linear("classifier", shape.hidden, shape.classes);
}

std::vector<Product> vit_head_products(const ModelShape& shape) {
  return {{shape.hidden, shape.classes, Rows::sequences}};
}

std::int64_t vit_head_sequence_values(const ModelShape& shape) { return shape.classes; }

std::optional<ShapeFault> find_vit_fault(const ModelShape& shape) {
  if (shape.image % shape.patch != 0) {
    return ShapeFault{"patch",
                      fmt::format("'image' = {} is not a multiple of 'patch' = {}; patches cover "
                                  "the image",
                                  shape.image, shape.patch)};
  }
  if (shape.image / shape.patch <= kLargestPatchesASide) return std::nullopt;
  return ShapeFault{"patch", fmt::format("'image' = {} is more than {} times 'patch' = {}; each "
                                         "patch is a token",
                                         shape.image, kLargestPatchesASide, shape.patch)};
}

void derive_vit(ModelShape& shape) {
  const std::int64_t patches_a_side = shape.image / shape.patch;
  shape.sequence = patches_a_side * patches_a_side + 1;
}

}  // namespace

const Architecture kVit = {
    .name = "vit",
    .block_name = "encoder.layer",
    .is_causal = false,
    .lora_targets = "query,value",
    .output_table = OutputTable::none,
    .positions = Positions::patches,
    .embedding = {.add_tensors = add_vit_embedding,
                  .made = looked_up_made,
                  .products = vit_embedding_products},
    .block = {.add_tensors = add_vit_block,
              .made = plain_block_made,
              .products = plain_block_products,
              .attentions = plain_block_attentions,
              .record = record_plain_block},
    .head = {.add_tensors = add_vit_head,
             .made = normed_head_made,
             .products = vit_head_products,
             .record = record_normed_head,
             .sequence_values = vit_head_sequence_values},
    .number_keys = kVitNumberKeys,
    .find_fault = find_vit_fault,
    .derive = derive_vit,
};

}  // namespace sluice::model
