// BERT with both heads of its pretraining (Hugging Face's BertForPreTraining, names without
// "bert."), with that for masked tokens alone (masked_head: BertForMaskedLM), or with one that
// classifies (classes: BertForSequenceClassification). LayerNorm stands behind each sublayer and
// behind the embeddings. The pooler and the two heads are one layer: the loss needs them together.
// The masked tokens' logits come from the token table, through a transform and with a bias of their
// own. A classifier's are of the pooled first token of each window.

#include "core/model/architectures/rows.h"
#include "core/model/architectures/shared_parts.h"

namespace sluice::model {
namespace {

// BERT's own configuration has this one.
constexpr double kBertNormEps = 1e-12;

constexpr std::array kBertNumberKeys = {
    kLayersKey,
    kHiddenKey,
    kHeadsKey,
    kSequenceKey,
    kVocabularyKey,
    NumberKey{"ffn", kPlace<&ModelShape::ffn>, 4'000'000, /*may_be_left_out=*/true},
    NumberKey{"segments", kPlace<&ModelShape::segments>, 1'000'000, /*may_be_left_out=*/true},
    NumberKey{"classes", kPlace<&ModelShape::classes>, 1'000'000, /*may_be_left_out=*/true},
};

constexpr std::array kBertRealKeys = {
    RealKey{"norm_eps", kPlace<&ModelShape::norm_eps>, 1e-15, 1, kBertNormEps}, kDropoutKey,
    kAttentionDropoutKey,
    RealKey{"classifier_dropout", kPlace<&ModelShape::dropout, &DropShares::output>, 0,
            kMostDropped, 0}};

void derive_bert(ModelShape& shape) { shape.dropout.embedding = shape.dropout.rows; }

constexpr std::array kBertFlagKeys = {FlagKey{"masked_head", kPlace<&ModelShape::masked_head>}};

std::optional<ShapeFault> find_bert_fault(const ModelShape& shape) {
  if (shape.classes == 1) {
    return ShapeFault{"classes",
                      "'classes' = 1 is regression, which is not trained; a class is chosen from 2 "
                      "or more"};
  }
  if (shape.classes > 0 && shape.masked_head) {
    return ShapeFault{"classes",
                      "'classes' and 'masked_head' are two heads of a bert; keep one of them"};
  }
  if (shape.classes > 0 || shape.dropout.output == 0) return std::nullopt;
  return ShapeFault{"classifier_dropout",
                    "'classifier_dropout' is of a head that classifies; say 'classes', too, or "
                    "leave it out"};
}

// The answers to "does segment B follow A?".
constexpr std::int64_t kNextSentenceClasses = 2;

void add_bert_embedding(LayoutBuilder& builder, const std::string& /*layer*/,
                        const ModelShape& shape) {
  builder.normal("embeddings.word_embeddings.weight", {shape.vocabulary, shape.hidden});
  builder.normal("embeddings.position_embeddings.weight", {shape.sequence, shape.hidden});
  builder.normal("embeddings.token_type_embeddings.weight", {shape.segment_count(), shape.hidden});
  builder.layer_norm("embeddings.LayerNorm", shape.hidden);
}

void add_bert_block(LayoutBuilder& builder, const std::string& layer, const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  for (const char* part : {"query", "key", "value"}) {
    builder.linear(layer + ".attention.self." + part, hidden, hidden);
  }
  builder.linear(layer + ".attention.output.dense", hidden, hidden);
  builder.layer_norm(layer + ".attention.output.LayerNorm", hidden);
  builder.linear(layer + ".intermediate.dense", hidden, shape.mlp_width());
  builder.linear(layer + ".output.dense", shape.mlp_width(), hidden);
  builder.layer_norm(layer + ".output.LayerNorm", hidden);
}

void add_transform(LayoutBuilder& builder, std::int64_t hidden) {
  builder.linear("cls.predictions.transform.dense", hidden, hidden);
  builder.layer_norm("cls.predictions.transform.LayerNorm", hidden);
}

// The logits' bias is last (TorchArchitecture::output_bias).
void add_masked_head(LayoutBuilder& builder, const ModelShape& shape) {
  add_transform(builder, shape.hidden);
  builder.zeros("cls.predictions.bias", shape.vocabulary);
}

void add_bert_head(LayoutBuilder& builder, const std::string& /*layer*/, const ModelShape& shape) {
  if (shape.masked_head) return add_masked_head(builder, shape);
  const std::int64_t hidden = shape.hidden;
  builder.linear("pooler.dense", hidden, hidden);
  builder.zeros("cls.predictions.bias", shape.vocabulary);
  add_transform(builder, hidden);
  builder.linear("cls.seq_relationship", hidden, kNextSentenceClasses);
}

void add_bert_classifier(LayoutBuilder& builder, const std::string& /*layer*/,
                         const ModelShape& shape) {
  builder.linear("pooler.dense", shape.hidden, shape.hidden);
  builder.linear("classifier", shape.hidden, shape.classes);
}

// Behind tanh, and behind dropout where there is some.
std::vector<MadeTensor> bert_classifier_made(const ModelShape& shape) {
  MadeTensors made = MadeTensors::of_source_input(shape.hidden);
  made.kept("pooled", shape.hidden);
  if (shape.dropout.output > 0) made.kept("pooled, of which some is dropped", shape.hidden);
  return made.take();
}

// tanh's backward asks for its result, as relu's does.
void record_bert_classifier(LayerTape& tape, const ModelShape& shape) {
  const auto first = tape.first_rows(tape.source(shape.hidden));
  const auto pooled = tape.rectified(tape.product_plus_bias(first, shape.hidden));
  tape.output(tape.dropped(pooled, shape.dropout.output));
}

std::vector<Product> bert_classifier_products(const ModelShape& shape) {
  return {{shape.hidden, shape.hidden}, {shape.hidden, shape.classes}};
}

void record_bert_block(LayerTape& tape, const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  const auto x = tape.input(hidden);
  const auto query = tape.product_plus_bias(x, hidden);
  const auto key = tape.product_plus_bias(x, hidden);
  const auto value = tape.product_plus_bias(x, hidden);
  const auto mixed = tape.product_plus_bias(tape.attention(query, key, value), hidden);
  const auto middle = tape.layer_norm(tape.sum(x, tape.dropped(mixed, shape.dropout.rows)));
  const auto widened = tape.activated(tape.product_plus_bias(middle, shape.mlp_width()));
  const auto last = tape.dropped(tape.product_plus_bias(widened, hidden), shape.dropout.rows);
  tape.output(tape.layer_norm(tape.sum(middle, last)));
}

void record_bert_head(LayerTape& tape, const ModelShape& shape) {
  const auto x = tape.input(shape.hidden);
  tape.output(tape.layer_norm(tape.activated(tape.product_plus_bias(x, shape.hidden))));
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
  std::vector<Product> products = {{hidden, hidden}, {hidden, shape.vocabulary}};
  if (shape.masked_head) return products;
  products.push_back({hidden, hidden, Rows::sequences});
  products.push_back({hidden, kNextSentenceClasses, Rows::sequences});
  return products;
}

// The pooler's before and after tanh, and the answer.
std::int64_t bert_head_sequence_values(const ModelShape& shape) {
  return shape.masked_head ? 0 : 2 * shape.hidden + kNextSentenceClasses;
}

const char* why_bert_not_trainable(const ModelShape& shape) {
  if (shape.masked_head || shape.classes > 0) return nullptr;
  return "a bert whose head is that of BertForPreTraining can be simulated and tuned; training "
         "knows that of BertForMaskedLM, so say 'masked_head = true' in the model file, and one "
         "that classifies: 'classes = N'";
}

}  // namespace

const Architecture kBert = {
    .name = "bert",
    .block_name = "encoder.layer",
    .is_causal = false,
    .is_trainable = true,
    .why_not_trainable = why_bert_not_trainable,
    .lora_targets = "query,value",
    .attends_by_window = true,
    .embedding = {.add_tensors = add_bert_embedding, .made = looked_up_and_normed_made},
    .block = {.add_tensors = add_bert_block,
              .made = plain_block_made,
              .products = plain_block_products,
              .attentions = plain_block_attentions,
              .record = record_bert_block},
    .head = {.add_tensors = add_bert_head,
             .made = bert_head_made,
             .products = bert_head_products,
             .record = record_bert_head,
             .sequence_values = bert_head_sequence_values},
    .classifier_head = {.add_tensors = add_bert_classifier,
                        .made = bert_classifier_made,
                        .products = bert_classifier_products,
                        .record = record_bert_classifier,
                        .side = Side::target},
    .number_keys = kBertNumberKeys,
    .real_keys = kBertRealKeys,
    .flag_keys = kBertFlagKeys,
    .find_fault = find_bert_fault,
    .derive = derive_bert,
};

}  // namespace sluice::model
