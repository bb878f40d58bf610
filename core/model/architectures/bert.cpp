// BERT with both heads of its pretraining (Hugging Face's BertForPreTraining, names without
// "bert."). LayerNorm stands behind each sublayer and behind the embeddings. The pooler and the two
// heads are one layer: the loss needs them together. The masked tokens' logits come from the token
// table, through a transform and with a bias of their own.

#include "core/model/architectures/rows.h"
#include "core/model/architectures/shared_parts.h"

namespace sluice::model {
namespace {

// Segments A and B, and the two answers to "does B follow A?".
constexpr std::int64_t kSegments = 2;
constexpr std::int64_t kNextSentenceClasses = 2;

void add_bert_embedding(LayoutBuilder& builder, const std::string& /*layer*/,
                        const ModelShape& shape) {
  builder.normal("embeddings.word_embeddings.weight", {shape.vocabulary, shape.hidden});
  builder.normal("embeddings.position_embeddings.weight", {shape.sequence, shape.hidden});
  builder.normal("embeddings.token_type_embeddings.weight", {kSegments, shape.hidden});
  builder.layer_norm("embeddings.LayerNorm", shape.hidden);
}

void add_bert_block(LayoutBuilder& builder, const std::string& layer, const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  for (const char* part : {"query", "key", "value"}) {
    builder.linear(layer + ".attention.self." + part, hidden, hidden);
  }
  builder.linear(layer + ".attention.output.dense", hidden, hidden);
  builder.layer_norm(layer + ".attention.output.LayerNorm", hidden);
  builder.linear(layer + ".intermediate.dense", hidden, 4 * hidden);
  builder.linear(layer + ".output.dense", 4 * hidden, hidden);
  builder.layer_norm(layer + ".output.LayerNorm", hidden);
}

void add_bert_head(LayoutBuilder& builder, const std::string& /*layer*/, const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  builder.linear("pooler.dense", hidden, hidden);
  builder.zeros("cls.predictions.bias", shape.vocabulary);
  builder.linear("cls.predictions.transform.dense", hidden, hidden);
  builder.layer_norm("cls.predictions.transform.LayerNorm", hidden);
  builder.linear("cls.seq_relationship", hidden, kNextSentenceClasses);
}

std::vector<MadeTensor> bert_head_made(const ModelShape& shape) {
  MadeTensors made(shape.hidden);
  made.kept("before gelu", shape.hidden);  // the transform's
  made.kept("after gelu", shape.hidden);
  made.layer_norm(shape.hidden);
  return made.take();
}

// Transform and logits of every token, as Hugging Face computes them, though only the masked ones
// (15 %) count in the loss; pooler and next-sentence answer of each sequence's first token.
std::vector<Product> bert_head_products(const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  return {{hidden, hidden},
          {hidden, shape.vocabulary},
          {hidden, hidden, Rows::sequences},
          {hidden, kNextSentenceClasses, Rows::sequences}};
}

// The pooler's before and after tanh, and the answer.
std::int64_t bert_head_sequence_values(const ModelShape& shape) {
  return 2 * shape.hidden + kNextSentenceClasses;
}

}  // namespace

const Architecture kBert = {
    .name = "bert",
    .block_name = "encoder.layer",
    .is_causal = false,
    .embedding = {.add_tensors = add_bert_embedding, .made = looked_up_and_normed_made},
    .block = {.add_tensors = add_bert_block,
              .made = plain_block_made,
              .products = plain_block_products,
              .attentions = plain_block_attentions},
    .head = {.add_tensors = add_bert_head,
             .made = bert_head_made,
             .products = bert_head_products,
             .sequence_values = bert_head_sequence_values},
    .number_keys = kTextKeys,
};

}  // namespace sluice::model
