#include "core/weights/detail/config_reading.h"

namespace sluice::weights::detail {

Status read_whole(Reading& at, const char* field, const char* key) {
  ASSIGN_OR_RETURN(const std::int64_t value, at.fields.whole(field));
  at.keys.put(key, value);
  return ok_status();
}

Status read_usual_sizes(Reading& at) {
  RETURN_IF_ERROR(read_whole(at, "num_hidden_layers", "layers"));
  RETURN_IF_ERROR(read_whole(at, "hidden_size", "hidden"));
  RETURN_IF_ERROR(read_whole(at, "num_attention_heads", "heads"));
  RETURN_IF_ERROR(read_whole(at, "max_position_embeddings", "sequence"));
  RETURN_IF_ERROR(read_whole(at, "vocab_size", "vocabulary"));
  return read_whole(at, "intermediate_size", "ffn");
}

Status read_dropout(Reading& at, const char* field, double left_out, const char* key) {
  ASSIGN_OR_RETURN(const double share, at.fields.real_or(field, left_out));
  if (share != 0) at.keys.put(key, share);
  return ok_status();
}

Status note_dropout(Reading& at, const char* field) {
  ASSIGN_OR_RETURN(const double share, at.fields.real_or(field, 0));
  if (share != 0) {
    at.notes.push_back(fmt::format("{}: {} is {}, and training here drops nothing out",
                                   at.fields.place(), field, share));
  }
  return ok_status();
}

Status check_class(ConfigFields& fields, const std::string& supported, const std::string& others) {
  const nlohmann::json* const classes = fields.find("architectures");
  if (classes == nullptr || *classes == nlohmann::json::array({supported})) return ok_status();
  return fields.refused("'architectures' is {}; of this model_type {}{} {} trained",
                        value_text(*classes), supported, others, others.empty() ? "is" : "are");
}

}  // namespace sluice::weights::detail
