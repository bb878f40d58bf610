// BERT with both heads of its pretraining. LayerNorm stands behind each sublayer and behind the
// embeddings. The pooler and the two heads are one layer: the loss needs them together. The masked
// tokens' logits come from the token table, through a transform and with a bias of their own.

#include "core/model/family_layouts.h"
#include "core/model/layout_builder.h"

namespace sluice::model {
namespace {

void add_bert_block(LayoutBuilder& builder, const std::string& layer, std::int64_t hidden) {
  builder.begin_layer(layer);
  for (const char* part : {"query", "key", "value"}) {
    builder.linear(layer + ".attention.self." + part, hidden, hidden);
  }
  builder.linear(layer + ".attention.output.dense", hidden, hidden);
  builder.layer_norm(layer + ".attention.output.LayerNorm", hidden);
  builder.linear(layer + ".intermediate.dense", hidden, 4 * hidden);
  builder.linear(layer + ".output.dense", 4 * hidden, hidden);
  builder.layer_norm(layer + ".output.LayerNorm", hidden);
}

}  // namespace

FlatLayout bert_layout(const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  LayoutBuilder builder;
  builder.begin_layer("embedding");
  builder.normal("embeddings.word_embeddings.weight", {shape.vocabulary, hidden});
  builder.normal("embeddings.position_embeddings.weight", {shape.sequence, hidden});
  builder.normal("embeddings.token_type_embeddings.weight", {kBertSegments, hidden});
  builder.layer_norm("embeddings.LayerNorm", hidden);
  for (std::int64_t block = 0; block < shape.layers; ++block) {
    add_bert_block(builder, fmt::format("encoder.layer.{}", block), hidden);
  }
  builder.begin_layer("head");
  builder.linear("pooler.dense", hidden, hidden);
  builder.zeros("cls.predictions.bias", shape.vocabulary);
  builder.linear("cls.predictions.transform.dense", hidden, hidden);
  builder.layer_norm("cls.predictions.transform.LayerNorm", hidden);
  builder.linear("cls.seq_relationship", hidden, kBertNextSentenceClasses);
  return builder.take();
}

}  // namespace sluice::model
