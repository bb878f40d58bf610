// T5 (Hugging Face's T5ForConditionalGeneration): an encoder that looks both ways and a decoder
// that looks back, and at the encoder's output. Norms are RMSNorms before each sublayer, no product
// has a bias, and heads may be wider than their share of the model. Scores are not scaled; a bias
// by the distance of two tokens is added to them, which all blocks of a stack share. Version 1.0:
// an MLP with relu, and logits from the token table, of rows that are scaled by 1 / sqrt(hidden)
// (with tied_tables). Version 1.1: an MLP gated by gelu (gated_mlp), and an output table of its
// own.
//
// What several blocks read is the embedding's: the token table, the two tables of biases, which
// stand in the first blocks of Hugging Face's modules, and the encoder's last norm.

#include <cmath>

#include "core/model/architectures/rows.h"
#include "core/model/architectures/shared_parts.h"

namespace sluice::model {
namespace {

// T5's own configuration has this one.
constexpr double kT5NormEps = 1e-6;

constexpr std::array kT5NumberKeys = {
    kLayersKey,
    NumberKey{"encoder_layers", kPlace<&ModelShape::stacks, &EncoderDecoder::encoder_layers>,
              100'000},
    kHiddenKey,
    kHeadsKey,
    kSequenceKey,
    kVocabularyKey,
    NumberKey{"ffn", kPlace<&ModelShape::ffn>, 4'000'000},
    NumberKey{"head_dim", kPlace<&ModelShape::head_dim>, 1'000'000, /*may_be_left_out=*/true},
    NumberKey{"buckets", kPlace<&ModelShape::stacks, &EncoderDecoder::buckets>, 1'000'000,
              /*may_be_left_out=*/true},
    NumberKey{"bucket_distance", kPlace<&ModelShape::stacks, &EncoderDecoder::bucket_distance>,
              100'000'000, /*may_be_left_out=*/true},
    NumberKey{"start_token", kPlace<&ModelShape::stacks, &EncoderDecoder::start_token>, 100'000'000,
              /*may_be_left_out=*/true},
    NumberKey{"end_token", kPlace<&ModelShape::stacks, &EncoderDecoder::end_token>, 100'000'000,
              /*may_be_left_out=*/true},
};

constexpr std::array kT5RealKeys = {
    RealKey{"norm_eps", kPlace<&ModelShape::norm_eps>, 1e-12, 1, kT5NormEps}, kDropoutKey};

constexpr std::array kT5FlagKeys = {
    FlagKey{"tied_tables", kPlace<&ModelShape::tied_tables>},
    FlagKey{"gated_mlp", kPlace<&ModelShape::stacks, &EncoderDecoder::gated_mlp>},
};

// The deviation that Hugging Face's class begins a product's weight with.
double std_of(std::int64_t in) { return 1 / std::sqrt(static_cast<double>(in)); }

void add_product(LayoutBuilder& builder, const std::string& name, std::int64_t in,
                 std::int64_t out) {
  builder.normal(name + ".weight", {out, in}, std_of(in));
}

void add_t5_attention(LayoutBuilder& builder, const std::string& name, const ModelShape& shape) {
  const std::int64_t width = shape.attention_width();
  // Scores are not scaled, so queries begin smaller.
  builder.normal(name + ".q.weight", {width, shape.hidden},
                 std_of(shape.hidden * shape.head_width()));
  add_product(builder, name + ".k", shape.hidden, width);
  add_product(builder, name + ".v", shape.hidden, width);
  add_product(builder, name + ".o", width, shape.hidden);
}

void add_t5_mlp(LayoutBuilder& builder, const std::string& layer, const ModelShape& shape) {
  const std::string name = layer + ".DenseReluDense";
  if (shape.stacks.gated_mlp) {
    add_product(builder, name + ".wi_0", shape.hidden, shape.ffn);
    add_product(builder, name + ".wi_1", shape.hidden, shape.ffn);
  } else {
    add_product(builder, name + ".wi", shape.hidden, shape.ffn);
  }
  add_product(builder, name + ".wo", shape.ffn, shape.hidden);
  builder.ones(layer + ".layer_norm.weight", shape.hidden);
}

void add_t5_embedding(LayoutBuilder& builder, const std::string& /*layer*/,
                      const ModelShape& shape) {
  builder.normal("shared.weight", {shape.vocabulary, shape.hidden}, 1);
  for (const char* stack : {"encoder", "decoder"}) {
    builder.normal(
        std::string(stack) + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        {shape.bucket_count(), shape.heads}, std_of(shape.hidden));
  }
  builder.ones("encoder.final_layer_norm.weight", shape.hidden);
}

void add_t5_encoder_block(LayoutBuilder& builder, const std::string& layer,
                          const ModelShape& shape) {
  add_t5_attention(builder, layer + ".layer.0.SelfAttention", shape);
  builder.ones(layer + ".layer.0.layer_norm.weight", shape.hidden);
  add_t5_mlp(builder, layer + ".layer.1", shape);
}

void add_t5_decoder_block(LayoutBuilder& builder, const std::string& layer,
                          const ModelShape& shape) {
  add_t5_attention(builder, layer + ".layer.0.SelfAttention", shape);
  builder.ones(layer + ".layer.0.layer_norm.weight", shape.hidden);
  add_t5_attention(builder, layer + ".layer.1.EncDecAttention", shape);
  builder.ones(layer + ".layer.1.layer_norm.weight", shape.hidden);
  add_t5_mlp(builder, layer + ".layer.2", shape);
}

void add_t5_head(LayoutBuilder& builder, const std::string& /*layer*/, const ModelShape& shape) {
  builder.ones("decoder.final_layer_norm.weight", shape.hidden);
  if (!shape.tied_tables) builder.normal("lm_head.weight", {shape.vocabulary, shape.hidden}, 1);
}

// Behind the products of query, key and value: the result, and a sum of each row.
void add_mixed(MadeTensors& made, const ModelShape& shape) {
  made.kept("attention's result", shape.attention_width());
  made.statistic("sums of its rows", shape.heads, kFp32Bytes);
}

void add_t5_self_attention(MadeTensors& made, const ModelShape& shape) {
  made.rms_norm(shape.hidden);
  for (const char* part : {"query", "key", "value"}) made.kept(part, shape.attention_width());
  add_mixed(made, shape);
}

// relu's backward asks its result, gelu's what it was made of.
void add_t5_mlp_made(MadeTensors& made, const ModelShape& shape) {
  made.rms_norm(shape.hidden);
  if (!shape.stacks.gated_mlp) {
    made.passing("before relu", shape.ffn);
    made.kept("after relu", shape.ffn);
    if (shape.dropout.rows > 0) made.kept("after relu and dropout", shape.ffn);
  } else {
    made.kept("gate", shape.ffn);
    made.kept("gelu of the gate", shape.ffn);
    made.kept("up", shape.ffn);
    made.kept("product of the two", shape.ffn);
  }
  made.in_memory("output", shape.hidden);
}

std::vector<MadeTensor> t5_encoder_block_made(const ModelShape& shape) {
  MadeTensors made(shape.hidden);
  add_t5_self_attention(made, shape);
  made.kept("residual stream in the middle", shape.hidden);
  add_t5_mlp_made(made, shape);
  return made.take();
}

std::vector<MadeTensor> t5_decoder_block_made(const ModelShape& shape) {
  MadeTensors made(shape.hidden);
  add_t5_self_attention(made, shape);
  made.kept("residual stream behind it", shape.hidden);
  made.rms_norm(shape.hidden);
  made.kept("query", shape.attention_width());
  made.kept_of_sources("key of the source", shape.attention_width());
  made.kept_of_sources("value of the source", shape.attention_width());
  add_mixed(made, shape);
  made.kept("residual stream in the middle", shape.hidden);
  add_t5_mlp_made(made, shape);
  return made.take();
}

LayerTape::Value attended(LayerTape& tape, LayerTape::Value queries, LayerTape::Value keys,
                          const ModelShape& shape) {
  const std::int64_t width = shape.attention_width();
  const auto query = tape.product(queries, width);
  const auto key = tape.product(keys, width);
  const auto value = tape.product(keys, width);
  const auto mixed = tape.product(tape.attention(query, key, value), shape.hidden);
  return tape.dropped(mixed, shape.dropout.rows);
}

LayerTape::Value attended_to_itself(LayerTape& tape, LayerTape::Value x, const ModelShape& shape) {
  const auto rows = tape.rms_norm(x);
  return tape.sum(x, attended(tape, rows, rows, shape));
}

void record_t5_mlp(LayerTape& tape, LayerTape::Value x, const ModelShape& shape) {
  const auto inner = tape.rms_norm(x);
  auto wide = tape.product(inner, shape.ffn);
  if (shape.stacks.gated_mlp) {
    wide = tape.activated(wide);
    wide = tape.times(wide, tape.product(inner, shape.ffn));
  } else {
    wide = tape.rectified(wide);
  }
  const auto last = tape.product(tape.dropped(wide, shape.dropout.rows), shape.hidden);
  tape.output(tape.sum(x, tape.dropped(last, shape.dropout.rows)));
}

void record_t5_encoder_block(LayerTape& tape, const ModelShape& shape) {
  record_t5_mlp(tape, attended_to_itself(tape, tape.input(shape.hidden), shape), shape);
}

void record_t5_decoder_block(LayerTape& tape, const ModelShape& shape) {
  const auto encoded = tape.source(shape.hidden);
  const auto x = attended_to_itself(tape, tape.input(shape.hidden), shape);
  record_t5_mlp(tape, tape.sum(x, attended(tape, tape.rms_norm(x), encoded, shape)), shape);
}

void record_t5_head(LayerTape& tape, const ModelShape& shape) {
  const auto rows = tape.rms_norm(tape.input(shape.hidden));
  tape.output(shape.tied_tables ? tape.scaled(rows) : rows);
}

void add_t5_products(std::vector<Product>& products, const ModelShape& shape, Rows keys) {
  const std::int64_t width = shape.attention_width();
  products.insert(products.end(), {{shape.hidden, width},
                                   {shape.hidden, width, keys},
                                   {shape.hidden, width, keys},
                                   {width, shape.hidden}});
}

void add_t5_mlp_products(std::vector<Product>& products, const ModelShape& shape) {
  if (shape.stacks.gated_mlp) products.push_back({shape.hidden, shape.ffn});
  products.push_back({shape.hidden, shape.ffn});
  products.push_back({shape.ffn, shape.hidden});
}

std::vector<Product> t5_encoder_block_products(const ModelShape& shape) {
  std::vector<Product> products;
  add_t5_products(products, shape, Rows::tokens);
  add_t5_mlp_products(products, shape);
  return products;
}

std::vector<Product> t5_decoder_block_products(const ModelShape& shape) {
  std::vector<Product> products;
  add_t5_products(products, shape, Rows::tokens);
  add_t5_products(products, shape, Rows::sources);
  add_t5_mlp_products(products, shape);
  return products;
}

// A causal mask is added as a bias: all pairs are computed.
std::vector<Attention> t5_encoder_block_attentions(const ModelShape& shape) {
  return {{shape.attention_width(), shape.heads}};
}

std::vector<Attention> t5_decoder_block_attentions(const ModelShape& shape) {
  return {{shape.attention_width(), shape.heads},
          {.width = shape.attention_width(), .heads = shape.heads, .of_sources = true}};
}

std::vector<MadeTensor> t5_head_made(const ModelShape& shape) {
  MadeTensors made(shape.hidden);
  made.rms_norm(shape.hidden);
  if (!shape.tied_tables) return made.take();
  std::vector<MadeTensor> tensors = made.take();
  tensors.back().use = MadeUse::passing;  // it is scaled
  tensors.push_back({"with weight, scaled", shape.hidden});
  return tensors;
}

std::optional<ShapeFault> find_t5_fault(const ModelShape& shape) {
  const EncoderDecoder& stacks = shape.stacks;
  if (stacks.encoder_layers >= shape.layers) {
    return ShapeFault{
        "encoder_layers",
        fmt::format("'layers' = {} are all blocks, and 'encoder_layers' = {} of them are the "
                    "encoder's; at least one must be left for the decoder",
                    shape.layers, stacks.encoder_layers)};
  }
  // A half of a half of them is by the token, and the others grow from there.
  if (shape.bucket_count() % 4 != 0 || shape.bucket_distance() <= shape.bucket_count() / 2) {
    return ShapeFault{stacks.buckets > 0 ? "buckets" : "bucket_distance",
                      fmt::format("'buckets' = {} must be a multiple of 4, and 'bucket_distance' = "
                                  "{} more than half of them",
                                  shape.bucket_count(), shape.bucket_distance())};
  }
  for (const auto& [key, token] :
       {std::pair{"start_token", stacks.start_token}, std::pair{"end_token", stacks.end_token}}) {
    if (token < shape.vocabulary) continue;
    return ShapeFault{key, fmt::format("'{}' = {} is no token of a vocabulary of {}", key, token,
                                       shape.vocabulary)};
  }
  return std::nullopt;
}

void derive_t5(ModelShape& shape) {
  DropShares& shares = shape.dropout;
  shares.embedding = shares.attention = shares.output = shares.rows;
}

}  // namespace

const Architecture kT5 = {
    .name = "t5",
    .block_name = "encoder.block",
    .is_causal = false,
    .is_trainable = true,
    .lora_targets = "q,v",
    .source_modules = "EncDecAttention.k,EncDecAttention.v",
    .output_table = OutputTable::own_unless_tied,
    .positions = Positions::any,
    .embedding = {.add_tensors = add_t5_embedding, .made = looked_up_made},
    .block = {.add_tensors = add_t5_encoder_block,
              .made = t5_encoder_block_made,
              .products = t5_encoder_block_products,
              .attentions = t5_encoder_block_attentions,
              .record = record_t5_encoder_block},
    .decoder_block_name = "decoder.block",
    .decoder_block = {.add_tensors = add_t5_decoder_block,
                      .made = t5_decoder_block_made,
                      .products = t5_decoder_block_products,
                      .attentions = t5_decoder_block_attentions,
                      .record = record_t5_decoder_block,
                      .side = Side::target},
    .head = {.add_tensors = add_t5_head,
             .made = t5_head_made,
             .products = token_logits,
             .record = record_t5_head,
             .side = Side::target},
    .number_keys = kT5NumberKeys,
    .real_keys = kT5RealKeys,
    .flag_keys = kT5FlagKeys,
    .find_fault = find_t5_fault,
    .derive = derive_t5,
};

}  // namespace sluice::model
