#include <map>
#include <nlohmann/json.hpp>

#include "core/weights/hf_config.h"
#include "core/weights/json_text.h"

namespace sluice::weights {
namespace {

using nlohmann::json;
using Values = std::map<std::string, std::string>;  // of a model file, as texts

std::int64_t whole(const Values& values, const char* key) {
  const auto found = values.find(key);
  return found == values.end() ? 0 : std::stoll(found->second);
}

double real(const Values& values, const char* key) {
  const auto found = values.find(key);
  return found == values.end() ? 0 : std::stod(found->second);
}

bool flag(const Values& values, const char* key) {
  const auto found = values.find(key);
  return found != values.end() && found->second == "true";
}

std::string word(const Values& values, const char* key) {
  const auto found = values.find(key);
  return found == values.end() ? "none" : found->second;
}

json gpt2_fields(const Values& values) {
  return {{"model_type", "gpt2"},
          {"architectures", {"GPT2LMHeadModel"}},
          {"n_layer", whole(values, "layers")},
          {"n_embd", whole(values, "hidden")},
          {"n_head", whole(values, "heads")},
          {"n_positions", whole(values, "sequence")},
          {"vocab_size", whole(values, "vocabulary")},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"attn_pdrop", real(values, "attention_dropout")},
          {"embd_pdrop", real(values, "embedding_dropout")},
          {"resid_pdrop", real(values, "dropout")},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr},
          {"tie_word_embeddings", true}};
}

// Classes have no names here but their numbers.
void add_classifier(json& fields, const Values& values, const model::ModelShape& shape) {
  fields["architectures"] = {"BertForSequenceClassification"};
  fields["problem_type"] = "single_label_classification";
  fields["classifier_dropout"] = real(values, "classifier_dropout");
  for (std::int64_t i = 0; i < shape.classes; ++i) {
    const std::string name = fmt::format("LABEL_{}", i);
    fields["id2label"][fmt::format("{}", i)] = name;
    fields["label2id"][name] = i;
  }
}

json bert_fields(const Values& values, const model::ModelShape& shape) {
  return {{"model_type", "bert"},
          {"architectures", {"BertForMaskedLM"}},
          {"num_hidden_layers", whole(values, "layers")},
          {"hidden_size", whole(values, "hidden")},
          {"num_attention_heads", whole(values, "heads")},
          {"max_position_embeddings", whole(values, "sequence")},
          {"vocab_size", whole(values, "vocabulary")},
          {"intermediate_size", shape.mlp_width()},
          {"type_vocab_size", shape.segment_count()},
          {"hidden_act", "gelu"},
          {"layer_norm_eps", real(values, "norm_eps")},
          {"hidden_dropout_prob", real(values, "dropout")},
          {"attention_probs_dropout_prob", real(values, "attention_dropout")},
          {"is_decoder", false},
          {"tie_word_embeddings", true}};
}

json t5_fields(const Values& values, const model::ModelShape& shape) {
  return {{"model_type", "t5"},
          {"architectures", {"T5ForConditionalGeneration"}},
          {"num_layers", shape.stacks.encoder_layers},
          {"num_decoder_layers", shape.decoder_layers()},
          {"d_model", whole(values, "hidden")},
          {"num_heads", whole(values, "heads")},
          {"d_kv", shape.head_width()},
          {"d_ff", whole(values, "ffn")},
          {"vocab_size", whole(values, "vocabulary")},
          {"n_positions", whole(values, "sequence")},
          {"relative_attention_num_buckets", shape.bucket_count()},
          {"relative_attention_max_distance", shape.bucket_distance()},
          {"feed_forward_proj", shape.stacks.gated_mlp ? "gated-gelu" : "relu"},
          {"layer_norm_epsilon", real(values, "norm_eps")},
          {"dropout_rate", real(values, "dropout")},
          {"is_encoder_decoder", true},
          {"pad_token_id", shape.stacks.start_token},
          {"decoder_start_token_id", shape.stacks.start_token},
          {"eos_token_id", shape.end_token()},
          {"tie_word_embeddings", shape.tied_tables}};
}

json rope_fields(const Values& values) {
  const std::string scaling = word(values, "rope_scaling");
  json rope = {{"rope_theta", real(values, "rope_theta")},
               {"rope_type", scaling == "none" ? "default" : scaling}};
  if (scaling == "none") return rope;
  rope["factor"] = real(values, "rope_factor");
  if (scaling == "linear") return rope;
  rope["original_max_position_embeddings"] = whole(values, "rope_original_sequence");
  if (scaling == "llama3") {
    rope["low_freq_factor"] = real(values, "rope_low_frequency");
    rope["high_freq_factor"] = real(values, "rope_high_frequency");
    return rope;
  }
  rope["beta_fast"] = real(values, "rope_beta_fast");
  rope["beta_slow"] = real(values, "rope_beta_slow");
  const double attention = real(values, "rope_attention_factor");
  if (attention != 0) rope["attention_factor"] = attention;
  return rope;
}

// The class whose arithmetic it is; "": none has this mixture.
std::string kin_of(const Values& values) {
  const bool qkv = flag(values, "qkv_bias");
  const bool o = flag(values, "o_bias");
  const bool mlp = flag(values, "mlp_bias");
  const bool has_window = whole(values, "window") > 0;
  if (flag(values, "qk_norm")) return qkv == o && !mlp ? "qwen3" : "";
  if (qkv && !o) return mlp ? "" : "qwen2";
  if (!has_window) return qkv == o ? "llama" : "";
  const bool is_plain = !qkv && !o && !mlp && whole(values, "first_window_block") == 0;
  return is_plain ? "mistral" : "";
}

void add_window(json& fields, const Values& values, const std::string& kin) {
  const std::int64_t tokens = whole(values, "window");
  if (kin == "mistral") fields["sliding_window"] = tokens;
  if (!kin.starts_with("qwen")) return;
  fields["use_sliding_window"] = tokens > 0;
  fields["sliding_window"] = tokens > 0 ? json(tokens) : json(nullptr);
  const std::int64_t layers = whole(values, "layers");
  const std::int64_t first = tokens > 0 ? whole(values, "first_window_block") : layers;
  fields["max_window_layers"] = first;
  json types = json::array();
  for (std::int64_t i = 0; i < layers; ++i) {
    types.push_back(i < first ? "full_attention" : "sliding_attention");
  }
  fields["layer_types"] = std::move(types);
}

const char* class_of(const std::string& kin) {
  if (kin == "llama") return "LlamaForCausalLM";
  if (kin == "mistral") return "MistralForCausalLM";
  return kin == "qwen2" ? "Qwen2ForCausalLM" : "Qwen3ForCausalLM";
}

json llama_fields(const Values& values, const model::ModelShape& shape, const std::string& kin) {
  json fields = {{"model_type", kin},
                 {"architectures", {class_of(kin)}},
                 {"num_hidden_layers", whole(values, "layers")},
                 {"hidden_size", whole(values, "hidden")},
                 {"num_attention_heads", whole(values, "heads")},
                 {"num_key_value_heads", whole(values, "kv_heads")},
                 {"intermediate_size", whole(values, "ffn")},
                 {"max_position_embeddings", whole(values, "sequence")},
                 {"vocab_size", whole(values, "vocabulary")},
                 {"hidden_act", "silu"},
                 {"rms_norm_eps", real(values, "norm_eps")},
                 {"rope_parameters", rope_fields(values)},
                 {"attention_dropout", 0.0},
                 {"bos_token_id", nullptr},
                 {"eos_token_id", nullptr},
                 {"tie_word_embeddings", flag(values, "tied_tables")}};
  // Qwen2's class has no such field, and takes one that is there.
  if (kin != "qwen2" || shape.head_dim > 0) fields["head_dim"] = shape.head_width();
  if (kin == "llama" || kin == "qwen3") fields["attention_bias"] = flag(values, "qkv_bias");
  if (kin == "llama") fields["mlp_bias"] = flag(values, "mlp_bias");
  add_window(fields, values, kin);
  return fields;
}

}  // namespace

Result<std::string> config_text(const model::ModelShape& shape, std::string_view dtype) {
  Values values;
  for (auto& [key, value] : model::file_values(shape)) values[key] = std::move(value);
  json fields;
  if (shape.family == model::Family::gpt2) {
    fields = gpt2_fields(values);
  } else if (shape.family == model::Family::bert && (shape.masked_head || shape.classifies())) {
    fields = bert_fields(values, shape);
    if (shape.classifies()) add_classifier(fields, values, shape);
  } else if (shape.family == model::Family::t5) {
    fields = t5_fields(values, shape);
  } else if (shape.family == model::Family::llama) {
    const std::string kin = kin_of(values);
    if (kin.empty()) {
      return make_error(ErrorCode::unsupported,
                        "model {}: no class of Hugging Face's among llama, mistral, qwen2 and "
                        "qwen3 has this mixture of biases, norms of heads and window",
                        shape.name);
    }
    fields = llama_fields(values, shape, kin);
  } else {
    return make_error(ErrorCode::unsupported, "model {}: {} models are not exported", shape.name,
                      model::family_name(shape.family));
  }
  fields["dtype"] = dtype;
  return fields.dump(2) + "\n";
}

Result<std::string> with_dtype(std::string_view text, const std::string& path,
                               std::string_view dtype) {
  ASSIGN_OR_RETURN(json fields, parse_json(text, {path}));
  // Version 4 knows the old name alone, and version 5 both.
  fields[fields.contains("torch_dtype") ? "torch_dtype" : "dtype"] = dtype;
  return fields.dump(2) + "\n";
}

}  // namespace sluice::weights
