#include <algorithm>

#include "core/weights/detail/config_families.h"
#include "core/weights/detail/config_rotary.h"

namespace sluice::weights::detail {
namespace {

using nlohmann::json;

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
  RETURN_IF_ERROR(read_usual_sizes(at));
  RETURN_IF_ERROR(at.fields.only("hidden_act", "silu"));
  ASSIGN_OR_RETURN(const double eps, at.fields.real_or("rms_norm_eps", 1e-6));
  at.keys.put("norm_eps", eps);
  ASSIGN_OR_RETURN(const bool is_tied, at.fields.flag_or("tie_word_embeddings", false));
  at.keys.set("tied_tables", is_tied);
  RETURN_IF_ERROR(note_dropout(at, "attention_dropout"));
  return read_rotary(at);
}

}  // namespace

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

}  // namespace sluice::weights::detail
