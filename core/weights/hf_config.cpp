#include "core/weights/hf_config.h"

#include <filesystem>

#include "base/nearest.h"
#include "core/weights/config_fields.h"
#include "core/weights/detail/config_families.h"
#include "core/weights/json_text.h"

namespace sluice::weights {
namespace {

using nlohmann::json;

constexpr std::int64_t kConfigMaxBytes = 4 << 20;

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

Status read_model(detail::Reading& at, const std::string& type, const json& config) {
  if (type == "llama") return detail::read_llama(at);
  if (type == "mistral") return detail::read_mistral(at, config);
  if (type == "qwen2") return detail::read_qwen2(at);
  if (type == "qwen3") return detail::read_qwen3(at);
  if (type == "gpt2") return detail::read_gpt2(at);
  if (type == "bert") return detail::read_bert(at);
  if (type == "t5") return detail::read_t5(at);
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
  detail::Keys keys;
  keys.put("name", name);
  detail::Reading at{fields, keys, read.notes};
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
