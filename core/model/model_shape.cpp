#include "core/model/model_shape.h"

#include "core/model/family_layouts.h"

namespace sluice::model {

std::vector<std::string> family_names() { return {"gpt2", "bert", "bloom", "vit", "llama"}; }

std::string family_name(Family family) { return family_names()[static_cast<std::size_t>(family)]; }

FlatLayout ModelShape::flat_layout() const {
  switch (family) {
    case Family::bert:
      return bert_layout(*this);
    case Family::bloom:
      return bloom_layout(*this);
    case Family::vit:
      return vit_layout(*this);
    case Family::llama:
      return llama_layout(*this);
    case Family::gpt2:
      break;
  }
  return gpt2_layout(*this);
}

bool ModelShape::is_causal() const { return family != Family::bert && family != Family::vit; }

Status ModelShape::check_sequence(std::int64_t asked) const {
  if (family == Family::vit && asked != sequence) {
    return make_error(ErrorCode::config,
                      "sequence={} contradicts model {}: an image of {} x {} pixels in patches of "
                      "{} x {} is always {} tokens; leave 'sequence' out",
                      asked, name, image, image, patch, patch, sequence);
  }
  // ALiBi and rotary positions have no table that could end.
  const bool has_table = family != Family::bloom && family != Family::llama;
  if (!has_table || asked <= sequence) return ok_status();
  return make_error(ErrorCode::config, "sequence={} is longer than model {} allows ({})", asked,
                    name, sequence);
}

Status check_trainable(const ModelShape& shape) {
  if (shape.family == Family::gpt2) return ok_status();
  return make_error(ErrorCode::config,
                    "model {}: {} models can be simulated and tuned; training knows gpt2",
                    shape.name, family_name(shape.family));
}

}  // namespace sluice::model
