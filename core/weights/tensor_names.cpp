#include "core/weights/tensor_names.h"

namespace sluice::weights {
namespace {

std::string_view prefix_of(model::Family family) {
  return family == model::Family::gpt2 ? "transformer." : "model.";
}

}  // namespace

std::string name_in_files(model::Family family, const std::string& name) {
  return name == kOutputTable ? name : std::string(prefix_of(family)) + name;
}

std::string name_in_layout(model::Family family, std::string_view name) {
  const std::string_view prefix = prefix_of(family);
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return std::string(name);
}

bool is_buffer(model::Family family, std::string_view name) {
  if (family == model::Family::gpt2) {
    return name.starts_with("h.") &&
           (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
  }
  return name.ends_with("rotary_emb.inv_freq");
}

std::string_view token_table(model::Family family) {
  return family == model::Family::gpt2 ? "wte.weight" : "embed_tokens.weight";
}

}  // namespace sluice::weights
