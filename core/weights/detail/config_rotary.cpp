#include "core/weights/detail/config_rotary.h"

#include <algorithm>
#include <cmath>

#include "base/nearest.h"

namespace sluice::weights::detail {
namespace {

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

}  // namespace

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

}  // namespace sluice::weights::detail
