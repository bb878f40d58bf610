#include "core/weights/tensor_names.h"

#include <utility>

namespace sluice::weights {
namespace {

using model::Family;

std::string_view prefix_of(Family family) {
  if (family == Family::bert) return "bert.";
  if (family == Family::t5) return "";
  return family == Family::gpt2 ? "transformer." : "model.";
}

// A head's tensors are the class's own, not of the model inside it.
bool is_of_head(std::string_view name) {
  return name == kOutputTable || name.starts_with("cls.") || name.starts_with("classifier.");
}

// Old files of BERT's have other words for the two of a norm.
std::string with_new_words(std::string_view name) {
  for (const auto& [old_end, end] :
       {std::pair{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}}) {
    const std::string_view word = old_end;
    if (name.ends_with(word)) return std::string(name.substr(0, name.size() - word.size())) + end;
  }
  return std::string(name);
}

}  // namespace

std::string name_in_files(model::Family family, const std::string& name) {
  return is_of_head(name) ? name : std::string(prefix_of(family)) + name;
}

std::string trained_name_in_files(const model::ModelShape& shape, const std::string& name) {
  return (shape.has_adapters() ? "base_model.model." : "") + name_in_files(shape.family, name);
}

std::string name_in_layout(model::Family family, std::string_view name) {
  const std::string_view prefix = prefix_of(family);
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return family == Family::bert ? with_new_words(name) : std::string(name);
}

bool is_passed_over(const model::ModelShape& shape, std::string_view name) {
  const Family family = shape.family;
  if (family == model::Family::gpt2) {
    return name.starts_with("h.") &&
           (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
  }
  if (shape.classifies()) {  // the head that it was pretrained with
    return name == "embeddings.position_ids" || name.starts_with("cls.");
  }
  if (family == Family::bert) {  // the last two are of BertForPreTraining's other head
    return name == "embeddings.position_ids" || name.starts_with("pooler.") ||
           name.starts_with("cls.seq_relationship.");
  }
  if (family == Family::t5) {
    return name == "encoder.embed_tokens.weight" || name == "decoder.embed_tokens.weight" ||
           name == "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
  }
  return name.ends_with("rotary_emb.inv_freq");
}

std::string_view token_table(model::Family family) {
  if (family == Family::bert) return "embeddings.word_embeddings.weight";
  if (family == Family::t5) return "shared.weight";
  return family == model::Family::gpt2 ? "wte.weight" : "embed_tokens.weight";
}

std::string_view output_table(model::Family family) {
  return family == Family::bert ? "cls.predictions.decoder.weight" : kOutputTable;
}

}  // namespace sluice::weights
