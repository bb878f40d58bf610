#pragma once
// A config.json of Hugging Face's on its way into the keys of a model file, and what its families'
// readers have in common.
//
// Thread contract: one owner.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/weights/config_fields.h"

namespace sluice::weights::detail {

// A gpt2's, a bert's or a t5's where the field is not there.
inline constexpr double kUsualDropout = 0.1;

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

Status read_whole(Reading& at, const char* field, const char* key);
// The fields that most classes have, by their usual names.
Status read_usual_sizes(Reading& at);
Status read_dropout(Reading& at, const char* field, double left_out, const char* key);
// Training drops nothing of these models, whatever the field says.
Status note_dropout(Reading& at, const char* field);
// The head of a class that is none of language models has other tensors, and another loss.
Status check_class(ConfigFields& fields, const std::string& supported,
                   const std::string& others = "");

}  // namespace sluice::weights::detail
