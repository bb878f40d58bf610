#include "core/weights/detail/config_families.h"

namespace sluice::weights::detail {
namespace {

using nlohmann::json;

// A token's number, which may be 0.
Result<std::int64_t> token_or(ConfigFields& fields, std::string_view key, std::int64_t left_out) {
  const json* const value = fields.find(key);
  if (value != nullptr && *value == 0) return 0;
  return fields.whole_or(key, left_out);
}

// "relu", or "gated-gelu", which means the formula with tanh; files of transformers 5 say both
// parts once more, and those win.
Result<bool> is_mlp_gated(ConfigFields& fields) {
  ASSIGN_OR_RETURN(const std::string both, fields.text_or("feed_forward_proj", "relu"));
  const bool begins_gated = both.starts_with("gated-");
  const std::string of_both = both == "gated-gelu" ? "gelu_new"
                              : begins_gated       ? both.substr(6)
                                                   : both;
  ASSIGN_OR_RETURN(const std::string said, fields.text_or("dense_act_fn", of_both));
  const std::string activation = said == "gelu_pytorch_tanh" ? "gelu_new" : said;
  ASSIGN_OR_RETURN(const bool is_gated, fields.flag_or("is_gated_act", begins_gated));
  if (activation == (is_gated ? "gelu_new" : "relu")) return is_gated;
  return fields.refused(
      "'feed_forward_proj' is {} (activation {}, {}); trained are relu, not gated, and gated-gelu",
      both, said, is_gated ? "gated" : "not gated");
}

// Version 1.0 ties the output table and scales logits; 1.1 does neither. Files of transformers 5
// say of both that the tables are tied, and of 1.1 that nothing is scaled.
Result<bool> is_t5_tied(ConfigFields& fields) {
  ASSIGN_OR_RETURN(const bool is_tied, fields.flag_or("tie_word_embeddings", true));
  ASSIGN_OR_RETURN(const bool is_scaled, fields.flag_or("scale_decoder_outputs", is_tied));
  if (is_tied || !is_scaled) return is_tied && is_scaled;
  return fields.refused(
      "'scale_decoder_outputs' is true and 'tie_word_embeddings' is false; logits are scaled where "
      "the output table is the token table, as in T5 1.0, and not where it is its own, as in 1.1");
}

// Which tokens begin a decoder's inputs and end texts: the objective hangs on them, and no more.
Status read_t5_tokens(Reading& at) {
  ASSIGN_OR_RETURN(const std::int64_t pad, token_or(at.fields, "pad_token_id", 0));
  ASSIGN_OR_RETURN(const std::int64_t start, token_or(at.fields, "decoder_start_token_id", pad));
  if (start > 0) at.keys.put("start_token", start);
  ASSIGN_OR_RETURN(const std::int64_t end, at.fields.whole_or("eos_token_id", 1));
  at.keys.put("end_token", end);
  return ok_status();
}

}  // namespace

Status read_t5(Reading& at) {
  RETURN_IF_ERROR(check_class(at.fields, "T5ForConditionalGeneration"));
  RETURN_IF_ERROR(at.fields.only("is_decoder", false));
  RETURN_IF_ERROR(at.fields.only("is_encoder_decoder", true));
  at.keys.put("family", "t5");
  ASSIGN_OR_RETURN(const std::int64_t encoder, at.fields.whole("num_layers"));
  ASSIGN_OR_RETURN(const std::int64_t decoder, at.fields.whole_or("num_decoder_layers", encoder));
  at.keys.put("layers", encoder + decoder);
  at.keys.put("encoder_layers", encoder);
  RETURN_IF_ERROR(read_whole(at, "d_model", "hidden"));
  RETURN_IF_ERROR(read_whole(at, "num_heads", "heads"));
  RETURN_IF_ERROR(read_whole(at, "vocab_size", "vocabulary"));
  RETURN_IF_ERROR(read_whole(at, "d_ff", "ffn"));
  RETURN_IF_ERROR(read_whole(at, "d_kv", "head_dim"));
  // No table ends; the field is the length of its training, and in old files alone.
  ASSIGN_OR_RETURN(const std::int64_t sequence, at.fields.whole_or("n_positions", 512));
  at.keys.put("sequence", sequence);
  ASSIGN_OR_RETURN(const std::int64_t buckets,
                   at.fields.whole_or("relative_attention_num_buckets", 32));
  at.keys.put("buckets", buckets);
  ASSIGN_OR_RETURN(const std::int64_t distance,
                   at.fields.whole_or("relative_attention_max_distance", 128));
  at.keys.put("bucket_distance", distance);
  ASSIGN_OR_RETURN(const double eps, at.fields.real_or("layer_norm_epsilon", 1e-6));
  at.keys.put("norm_eps", eps);
  ASSIGN_OR_RETURN(const bool is_gated, is_mlp_gated(at.fields));
  at.keys.set("gated_mlp", is_gated);
  ASSIGN_OR_RETURN(const bool is_tied, is_t5_tied(at.fields));
  at.keys.set("tied_tables", is_tied);
  RETURN_IF_ERROR(read_t5_tokens(at));
  at.fields.pass_over("classifier_dropout initializer_factor output_past");
  return read_dropout(at, "dropout_rate", kUsualDropout, "dropout");
}

}  // namespace sluice::weights::detail
