#include "core/weights/hf_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/nearest.h"
#include "core/weights/config_fields.h"
#include "core/weights/json_text.h"

namespace sluice::weights {
namespace {

using nlohmann::json;

constexpr std::int64_t kConfigMaxBytes = 4 << 20;

// A gpt2's, a bert's or a t5's where the field is not there.
constexpr double kUsualDropout = 0.1;

// The keys of a model file (docs/model_format.md) that the fields come to, with their values: the
// model file's own checks then hold for both.
class Keys {
 public:
  void put(const char* key, std::string value) { values_.emplace_back(key, std::move(value)); }
  void put(const char* key, std::int64_t value) { put(key, fmt::format("{}", value)); }
  void put(const char* key, double value) { put(key, fmt::format("{}", value)); }
  // A flag that is not set is left out.
  void set(const char* key, bool value) {
    if (value) put(key, "true");
  }
  const std::vector<std::pair<std::string, std::string>>& values() const { return values_; }

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

struct Reading {
  ConfigFields& fields;
  Keys& keys;
  std::vector<std::string>& notes;
};

// Names, tokens, generation and labels: what a model computes does not hang on them.
constexpr std::string_view kHarmless =
    "attn_implementation bos_token_id eos_token_id pad_token_id sep_token_id cls_token_id "
    "decoder_start_token_id unk_token_id mask_token_id dtype torch_dtype "
    "transformers_version use_cache initializer_range output_attentions output_hidden_states "
    "output_scores return_dict return_dict_in_generate task_specific_params id2label "
    "label2id num_labels finetuning_task problem_type tokenizer_class prefix "
    "tie_encoder_decoder torchscript max_length min_length do_sample early_stopping "
    "num_beams num_beam_groups diversity_penalty temperature top_k top_p typical_p "
    "repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size "
    "bad_words_ids num_return_sequences forced_bos_token_id forced_eos_token_id "
    "remove_invalid_values exponential_decay_length_penalty suppress_tokens "
    "begin_suppress_tokens is_decoder is_encoder_decoder tf_legacy_loss "
    "gradient_checkpointing max_sequence_length transformers.js_config unsloth_fixed "
    "unsloth_version";

Status read_whole(Reading& at, const char* field, const char* key) {
  ASSIGN_OR_RETURN(const std::int64_t value, at.fields.whole(field));
  at.keys.put(key, value);
  return ok_status();
}

Status read_dropout(Reading& at, const char* field, double left_out, const char* key) {
  ASSIGN_OR_RETURN(const double share, at.fields.real_or(field, left_out));
  if (share != 0) at.keys.put(key, share);
  return ok_status();
}

// Training drops nothing of these models, whatever the field says.
Status note_dropout(Reading& at, const char* field) {
  ASSIGN_OR_RETURN(const double share, at.fields.real_or(field, 0));
  if (share != 0) {
    at.notes.push_back(fmt::format("{}: {} is {}, and training here drops nothing out",
                                   at.fields.place(), field, share));
  }
  return ok_status();
}

// The head of a class that is none of language models has other tensors, and another loss.
Status check_class(ConfigFields& fields, const std::string& supported,
                   const std::string& others = "") {
  const json* const classes = fields.find("architectures");
  if (classes == nullptr || *classes == json::array({supported})) return ok_status();
  return fields.refused("'architectures' is {}; of this model_type {}{} {} trained",
                        value_text(*classes), supported, others, others.empty() ? "is" : "are");
}

// "rope_type", which version 4 also calls "type".
Result<std::string> rope_type(ConfigFields& fields) {
  ASSIGN_OR_RETURN(const std::string old_word, fields.text_or("type", ""));
  ASSIGN_OR_RETURN(const std::string type,
                   fields.text_or("rope_type", old_word.empty() ? "default" : old_word));
  if (old_word.empty() || old_word == type) return type;
  return fields.refused("'rope_type' is {} and 'type' is {}", type, old_word);
}

// cos and sin of yarn are multiplied with this; 0: as the rule says by itself.
Result<double> yarn_attention_factor(ConfigFields& fields, double factor) {
  ASSIGN_OR_RETURN(const double mscale, fields.real_or("mscale", 0));
  ASSIGN_OR_RETURN(const double of_all, fields.real_or("mscale_all_dim", 0));
  ASSIGN_OR_RETURN(const double said, fields.real_or("attention_factor", 0));
  if (said != 0 || mscale == 0 || of_all == 0) return said;
  const auto of = [factor](double scale) {
    return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
  };
  return of(mscale) / of(of_all);
}

Status read_yarn(ConfigFields& fields, Keys& keys, double factor) {
  RETURN_IF_ERROR(fields.only("truncate", true));
  ASSIGN_OR_RETURN(const double fast, fields.real_or("beta_fast", 32));
  ASSIGN_OR_RETURN(const double slow, fields.real_or("beta_slow", 1));
  ASSIGN_OR_RETURN(const double attention, yarn_attention_factor(fields, factor));
  keys.put("rope_beta_fast", fast);
  keys.put("rope_beta_slow", slow);
  if (attention != 0) keys.put("rope_attention_factor", attention);
  return ok_status();
}

Status read_llama3(ConfigFields& fields, Keys& keys) {
  ASSIGN_OR_RETURN(const double low, fields.real("low_freq_factor"));
  ASSIGN_OR_RETURN(const double high, fields.real("high_freq_factor"));
  keys.put("rope_low_frequency", low);
  keys.put("rope_high_frequency", high);
  return ok_status();
}

Status read_scaling(ConfigFields& fields, Keys& keys, const std::string& type,
                    std::int64_t sequence) {
  const std::vector<std::string> known = {"default", "linear", "llama3", "yarn"};
  if (std::ranges::find(known, type) == known.end()) {
    return fields.refused("rope_type '{}' is not trained{}; there is {}", type,
                          did_you_mean(type, known), fmt::join(known, ", "));
  }
  if (type == "default") return ok_status();
  ASSIGN_OR_RETURN(const double factor, fields.real("factor"));
  keys.put("rope_scaling", type);
  keys.put("rope_factor", factor);
  if (type == "linear") return ok_status();
  ASSIGN_OR_RETURN(const std::int64_t original,
                   fields.whole_or("original_max_position_embeddings", sequence));
  keys.put("rope_original_sequence", original);
  return type == "yarn" ? read_yarn(fields, keys, factor) : read_llama3(fields, keys);
}

// Version 5 writes rope_parameters; version 4 rope_theta on top and rope_scaling, which may be
// null.
Status read_rotary(Reading& at) {
  const json* const now = at.fields.find("rope_parameters");
  const json* const before = at.fields.find("rope_scaling");
  if (now != nullptr && before != nullptr) {
    return at.fields.refused("has both rope_parameters and rope_scaling; keep one of them");
  }
  ASSIGN_OR_RETURN(const double on_top, at.fields.real_or("rope_theta", 0));
  RETURN_IF_ERROR(at.fields.only("partial_rotary_factor", 1.0));
  ASSIGN_OR_RETURN(const std::int64_t sequence, at.fields.whole("max_position_embeddings"));
  const json none = json::object();
  const json& said = now != nullptr ? *now : before != nullptr ? *before : none;
  const char* const name = now != nullptr ? "rope_parameters" : "rope_scaling";
  if (!said.is_object()) return at.fields.refused("'{}' is {}", name, value_text(said));
  ConfigFields rope(said, at.fields.place() + ": " + name);
  ASSIGN_OR_RETURN(const double inside, rope.real_or("rope_theta", 0));
  if (on_top != 0 && inside != 0 && on_top != inside) {
    return rope.refused("'rope_theta' is {} here and {} on top", inside, on_top);
  }
  RETURN_IF_ERROR(rope.only("partial_rotary_factor", 1.0));
  ASSIGN_OR_RETURN(const std::string type, rope_type(rope));
  if (const double theta = inside != 0 ? inside : on_top; theta != 0) {
    at.keys.put("rope_theta", theta);
  }
  RETURN_IF_ERROR(read_scaling(rope, at.keys, type, sequence));
  return rope.check_all_read("rope_type " + type);
}

// The first block with a window, of blocks that all have one from there on; `layers`: none has.
Result<std::int64_t> first_window_block(ConfigFields& fields, std::int64_t layers,
                                        std::int64_t left_out) {
  const json* const types = fields.find("layer_types");
  if (types == nullptr) return left_out;
  if (!types->is_array() || std::ssize(*types) != layers) {
    return fields.refused("'layer_types' has not one type for each of {} layers", layers);
  }
  std::int64_t first = layers;
  for (std::int64_t i = 0; i < layers; ++i) {
    const json& type = (*types)[static_cast<std::size_t>(i)];
    if (type == "sliding_attention") {
      first = std::min(first, i);
    } else if (type != "full_attention") {
      return fields.refused("'layer_types' has {}; there is full_attention and sliding_attention",
                            value_text(type));
    } else if (first < i) {
      return fields.refused(
          "'layer_types' has full_attention in layer {}, behind sliding_attention "
          "in layer {}; windows are trained from one layer on",
          i, first);
    }
  }
  return first;
}

struct WindowRule {
  std::int64_t tokens = 0;  // 0: no window
  std::int64_t first_block = 0;
};

Status put_window(Reading& at, const WindowRule& rule) {
  ASSIGN_OR_RETURN(const std::int64_t layers, at.fields.whole("num_hidden_layers"));
  ASSIGN_OR_RETURN(
      const std::int64_t first,
      first_window_block(at.fields, layers, rule.tokens > 0 ? rule.first_block : layers));
  if (first >= layers) return ok_status();
  if (rule.tokens == 0) {
    return at.fields.refused("'layer_types' has sliding_attention, and there is no sliding_window");
  }
  at.keys.put("window", rule.tokens);
  if (first > 0) at.keys.put("first_window_block", first);
  return ok_status();
}

Status read_llama_window(Reading& at) {
  RETURN_IF_ERROR(at.fields.only("sliding_window", nullptr));
  return put_window(at, {});
}

// Null is no window; a field that is not there is the class's default.
Status read_mistral_window(Reading& at, bool is_there) {
  ASSIGN_OR_RETURN(const std::int64_t tokens,
                   at.fields.whole_or("sliding_window", is_there ? 0 : 4096));
  return put_window(at, {tokens, 0});
}

Status read_qwen_window(Reading& at) {
  ASSIGN_OR_RETURN(const bool is_used, at.fields.flag_or("use_sliding_window", false));
  ASSIGN_OR_RETURN(const std::int64_t tokens, at.fields.whole_or("sliding_window", 4096));
  const json* const layers = at.fields.find("max_window_layers");
  const bool is_zero = layers != nullptr && *layers == 0;
  ASSIGN_OR_RETURN(const std::int64_t first,
                   is_zero ? Result<std::int64_t>(0) : at.fields.whole_or("max_window_layers", 28));
  return put_window(at, {is_used ? tokens : 0, first});
}

// A width that is its share of the model's is left out, as model files do.
Status read_head_width(Reading& at, std::int64_t left_out) {
  ASSIGN_OR_RETURN(const std::int64_t hidden, at.fields.whole("hidden_size"));
  ASSIGN_OR_RETURN(const std::int64_t heads, at.fields.whole("num_attention_heads"));
  ASSIGN_OR_RETURN(const std::int64_t width, at.fields.whole_or("head_dim", left_out));
  const bool is_share = hidden % heads == 0 && width == hidden / heads;
  if (width != 0 && !is_share) at.keys.put("head_dim", width);
  return ok_status();
}

// What Llama and its kin have in common.
Status read_llama_kin(Reading& at) {
  at.keys.put("family", "llama");
  RETURN_IF_ERROR(read_whole(at, "num_hidden_layers", "layers"));
  RETURN_IF_ERROR(read_whole(at, "hidden_size", "hidden"));
  RETURN_IF_ERROR(read_whole(at, "num_attention_heads", "heads"));
  RETURN_IF_ERROR(read_whole(at, "max_position_embeddings", "sequence"));
  RETURN_IF_ERROR(read_whole(at, "vocab_size", "vocabulary"));
  RETURN_IF_ERROR(read_whole(at, "intermediate_size", "ffn"));
  RETURN_IF_ERROR(at.fields.only("hidden_act", "silu"));
  ASSIGN_OR_RETURN(const double eps, at.fields.real_or("rms_norm_eps", 1e-6));
  at.keys.put("norm_eps", eps);
  ASSIGN_OR_RETURN(const bool is_tied, at.fields.flag_or("tie_word_embeddings", false));
  at.keys.set("tied_tables", is_tied);
  RETURN_IF_ERROR(note_dropout(at, "attention_dropout"));
  return read_rotary(at);
}

// A Llama that leaves it out has as many heads of keys as of queries.
Status read_llama(Reading& at) {
  RETURN_IF_ERROR(check_class(at.fields, "LlamaForCausalLM"));
  RETURN_IF_ERROR(read_llama_kin(at));
  RETURN_IF_ERROR(read_head_width(at, 0));
  ASSIGN_OR_RETURN(const std::int64_t heads, at.fields.whole("num_attention_heads"));
  ASSIGN_OR_RETURN(const std::int64_t kv_heads, at.fields.whole_or("num_key_value_heads", heads));
  at.keys.put("kv_heads", kv_heads);
  ASSIGN_OR_RETURN(const bool attention_bias, at.fields.flag_or("attention_bias", false));
  ASSIGN_OR_RETURN(const bool mlp_bias, at.fields.flag_or("mlp_bias", false));
  at.keys.set("qkv_bias", attention_bias);
  at.keys.set("o_bias", attention_bias);
  at.keys.set("mlp_bias", mlp_bias);
  RETURN_IF_ERROR(at.fields.only("pretraining_tp", 1));
  RETURN_IF_ERROR(at.fields.only("is_llama_config", true));
  RETURN_IF_ERROR(at.fields.only("rope_interleaved", false));
  return read_llama_window(at);
}

Status read_mistral(Reading& at, const json& config) {
  RETURN_IF_ERROR(check_class(at.fields, "MistralForCausalLM"));
  RETURN_IF_ERROR(read_llama_kin(at));
  RETURN_IF_ERROR(read_head_width(at, 0));
  RETURN_IF_ERROR(read_whole(at, "num_key_value_heads", "kv_heads"));
  return read_mistral_window(at, config.contains("sliding_window"));
}

Status read_qwen2(Reading& at) {
  RETURN_IF_ERROR(check_class(at.fields, "Qwen2ForCausalLM"));
  RETURN_IF_ERROR(read_llama_kin(at));
  RETURN_IF_ERROR(read_head_width(at, 0));
  RETURN_IF_ERROR(read_whole(at, "num_key_value_heads", "kv_heads"));
  RETURN_IF_ERROR(at.fields.only("use_mrope", false));
  at.keys.set("qkv_bias", true);  // the class has it without a field
  return read_qwen_window(at);
}

// The class's head has 128 values, however wide the model is, where the field is not there.
Status read_qwen3(Reading& at) {
  RETURN_IF_ERROR(check_class(at.fields, "Qwen3ForCausalLM"));
  RETURN_IF_ERROR(read_llama_kin(at));
  RETURN_IF_ERROR(read_head_width(at, 128));
  RETURN_IF_ERROR(read_whole(at, "num_key_value_heads", "kv_heads"));
  ASSIGN_OR_RETURN(const bool attention_bias, at.fields.flag_or("attention_bias", false));
  at.keys.set("qkv_bias", attention_bias);
  at.keys.set("o_bias", attention_bias);
  at.keys.set("qk_norm", true);
  return read_qwen_window(at);
}

constexpr std::string_view kGpt2Harmless =
    "summary_type summary_use_proj summary_activation summary_first_dropout "
    "summary_proj_to_labels";

Status read_gpt2(Reading& at) {
  RETURN_IF_ERROR(check_class(at.fields, "GPT2LMHeadModel"));
  at.keys.put("family", "gpt2");
  RETURN_IF_ERROR(read_whole(at, "n_layer", "layers"));
  RETURN_IF_ERROR(read_whole(at, "n_embd", "hidden"));
  RETURN_IF_ERROR(read_whole(at, "n_head", "heads"));
  RETURN_IF_ERROR(read_whole(at, "n_positions", "sequence"));
  RETURN_IF_ERROR(read_whole(at, "vocab_size", "vocabulary"));
  ASSIGN_OR_RETURN(const std::int64_t positions, at.fields.whole("n_positions"));
  ASSIGN_OR_RETURN(const std::int64_t hidden, at.fields.whole("n_embd"));
  RETURN_IF_ERROR(at.fields.only("n_ctx", positions));
  RETURN_IF_ERROR(at.fields.only("n_inner", 4 * hidden));
  // Two names of the same formula.
  ASSIGN_OR_RETURN(const std::string activation,
                   at.fields.text_or("activation_function", "gelu_new"));
  if (activation != "gelu_pytorch_tanh") {
    RETURN_IF_ERROR(at.fields.only("activation_function", "gelu_new"));
  }
  RETURN_IF_ERROR(at.fields.only("layer_norm_epsilon", 1e-5));
  RETURN_IF_ERROR(at.fields.only("scale_attn_weights", true));
  RETURN_IF_ERROR(at.fields.only("scale_attn_by_inverse_layer_idx", false));
  RETURN_IF_ERROR(at.fields.only("reorder_and_upcast_attn", false));
  RETURN_IF_ERROR(at.fields.only("add_cross_attention", false));
  RETURN_IF_ERROR(at.fields.only("tie_word_embeddings", true));
  RETURN_IF_ERROR(read_dropout(at, "attn_pdrop", kUsualDropout, "attention_dropout"));
  RETURN_IF_ERROR(read_dropout(at, "embd_pdrop", kUsualDropout, "embedding_dropout"));
  RETURN_IF_ERROR(read_dropout(at, "resid_pdrop", kUsualDropout, "dropout"));
  at.fields.pass_over(kGpt2Harmless);
  return ok_status();
}

constexpr const char* kBertClassifier = "BertForSequenceClassification";

// Whether it is the class that classifies, of the two that are trained.
Result<bool> is_bert_classifier(ConfigFields& fields) {
  const json* const classes = fields.find("architectures");
  if (classes != nullptr && *classes == json::array({kBertClassifier})) return true;
  RETURN_IF_ERROR(check_class(fields, "BertForMaskedLM", fmt::format(" and {}", kBertClassifier)));
  return false;
}

// As many as have a name, or are counted, or transformers' own number.
Result<std::int64_t> label_count(ConfigFields& fields) {
  const json* const names = fields.find("id2label");
  if (names != nullptr && (!names->is_object() || names->empty())) {
    return fields.refused("'id2label' is {}, and no names of labels", value_text(*names));
  }
  const std::int64_t named = names != nullptr ? std::ssize(*names) : 2;
  ASSIGN_OR_RETURN(const std::int64_t count, fields.whole_or("num_labels", named));
  if (names == nullptr || count == named) return count;
  return fields.refused("'num_labels' is {}, and 'id2label' has {} names", count, named);
}

Status read_bert_classifier(Reading& at, double dropout) {
  RETURN_IF_ERROR(at.fields.only("problem_type", "single_label_classification"));
  ASSIGN_OR_RETURN(const std::int64_t count, label_count(at.fields));
  if (count == 1) {
    return at.fields.refused(
        "has one label (num_labels, id2label), which is regression; trained "
        "is a choice of two or more");
  }
  at.keys.put("classes", count);
  return read_dropout(at, "classifier_dropout", dropout, "classifier_dropout");
}

// The arithmetic that is trained: an encoder's, with a table of positions and gelu by erf.
Status check_bert(ConfigFields& fields) {
  RETURN_IF_ERROR(fields.only("is_decoder", false));
  RETURN_IF_ERROR(fields.only("add_cross_attention", false));
  RETURN_IF_ERROR(fields.only("position_embedding_type", "absolute"));
  RETURN_IF_ERROR(fields.only("hidden_act", "gelu"));
  return fields.only("tie_word_embeddings", true);
}

Status read_bert(Reading& at) {
  ASSIGN_OR_RETURN(const bool is_classifier, is_bert_classifier(at.fields));
  RETURN_IF_ERROR(check_bert(at.fields));
  at.keys.put("family", "bert");
  RETURN_IF_ERROR(read_whole(at, "num_hidden_layers", "layers"));
  RETURN_IF_ERROR(read_whole(at, "hidden_size", "hidden"));
  RETURN_IF_ERROR(read_whole(at, "num_attention_heads", "heads"));
  RETURN_IF_ERROR(read_whole(at, "max_position_embeddings", "sequence"));
  RETURN_IF_ERROR(read_whole(at, "vocab_size", "vocabulary"));
  RETURN_IF_ERROR(read_whole(at, "intermediate_size", "ffn"));
  ASSIGN_OR_RETURN(const std::int64_t segments, at.fields.whole_or("type_vocab_size", 2));
  ASSIGN_OR_RETURN(const double eps, at.fields.real_or("layer_norm_eps", 1e-12));
  at.keys.put("segments", segments);
  at.keys.put("norm_eps", eps);
  at.keys.set("masked_head", !is_classifier);
  RETURN_IF_ERROR(read_dropout(at, "hidden_dropout_prob", kUsualDropout, "dropout"));
  RETURN_IF_ERROR(
      read_dropout(at, "attention_probs_dropout_prob", kUsualDropout, "attention_dropout"));
  ASSIGN_OR_RETURN(const double dropout, at.fields.real_or("hidden_dropout_prob", kUsualDropout));
  if (is_classifier) return read_bert_classifier(at, dropout);
  at.fields.pass_over("classifier_dropout");  // of another head
  return ok_status();
}

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

Status read_model(Reading& at, const std::string& type, const json& config) {
  if (type == "llama") return read_llama(at);
  if (type == "mistral") return read_mistral(at, config);
  if (type == "qwen2") return read_qwen2(at);
  if (type == "qwen3") return read_qwen3(at);
  if (type == "gpt2") return read_gpt2(at);
  if (type == "bert") return read_bert(at);
  if (type == "t5") return read_t5(at);
  const std::vector<std::string> known = {"bert",  "gpt2",  "llama", "mistral",
                                          "qwen2", "qwen3", "t5"};
  return at.fields.refused("model_type '{}' is not trained{}; there is {}", type,
                           did_you_mean(type, known), fmt::join(known, ", "));
}

// The folder's name, also of "."; a link is not followed, since the hub's own folders are full of
// links to files elsewhere.
std::string name_of(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  const std::string name = whole.parent_path().filename().string();
  return name.empty() ? "model" : name;
}

}  // namespace

Result<HuggingFaceConfig> parse_config(std::string_view text, const std::string& path,
                                       const std::string& name) {
  ASSIGN_OR_RETURN(const json config, parse_json(text, {path}));
  HuggingFaceConfig read;
  ConfigFields fields(config, path);
  Keys keys;
  keys.put("name", name);
  Reading at{fields, keys, read.notes};
  ASSIGN_OR_RETURN(const std::string type, fields.text_or("model_type", ""));
  if (type.empty()) {
    return make_error(ErrorCode::config,
                      "{}: 'model_type' is missing; is it a model's config.json?", path);
  }
  if (fields.has("quantization_config")) {
    return fields.refused(
        "has a quantization_config; training needs weights that are not quantised");
  }
  RETURN_IF_ERROR(read_model(at, type, config));
  RETURN_IF_ERROR(fields.only("chunk_size_feed_forward", 0));
  RETURN_IF_ERROR(fields.only("pruned_heads", json::object()));
  RETURN_IF_ERROR(fields.only("use_bfloat16", false));
  RETURN_IF_ERROR(fields.only("cross_attention_hidden_size", nullptr));
  fields.pass_over(kHarmless);
  RETURN_IF_ERROR(fields.check_all_read("model_type " + type));
  ASSIGN_OR_RETURN(read.shape, model::parse_model_shape(model::model_file_text(keys.values()),
                                                        path + " as a model file"));
  return read;
}

Result<HuggingFaceConfig> load_config(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_text(path, kConfigMaxBytes, "configuration"));
  return parse_config(text, path, name_of(path));
}

}  // namespace sluice::weights
