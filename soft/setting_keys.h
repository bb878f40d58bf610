#pragma once
// The settings of a software device, one environment variable: "devices=2;fault=lost@3". Each
// device has its own keys; what is wrong with a text is said in the same words by all.
//
// Thread contract: immutable once it is made.

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "base/setting_text.h"
#include "base/status.h"

namespace sluice::soft {

struct NumberRange {
  double least;
  double most;
};

template <typename T>
Status parse_number(const char* variable, std::string_view key, std::string_view text,
                    NumberRange range, T& value) {
  T parsed{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), parsed);
  const auto number = static_cast<double>(parsed);
  const bool is_good = end.ec == std::errc() && end.ptr == text.data() + text.size() &&
                       number >= range.least && number <= range.most;
  if (!is_good)
    return make_error(ErrorCode::config, "{}: {}='{}' is no number from {} to {}", variable, key,
                      text, range.least, range.most);
  value = parsed;
  return ok_status();
}

inline std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") + 1 - first);
}

template <typename Settings>
class SettingKeys {
 public:
  using Parse = std::function<Status(std::string_view value, Settings& settings)>;

  explicit SettingKeys(const char* variable) : variable_(variable) {}

  SettingKeys& key(const char* name, Parse parse) {
    keys_.push_back({name, std::move(parse)});
    return *this;
  }
  template <typename T>
  SettingKeys& number(const char* name, T Settings::* member, NumberRange range) {
    return key(name, [=, variable = variable_](std::string_view value, Settings& settings) {
      return parse_number(variable, name, value, range, settings.*member);
    });
  }
  SettingKeys& text(const char* name, std::string Settings::* member) {
    return key(name, [=](std::string_view value, Settings& settings) {
      settings.*member = value;
      return ok_status();
    });
  }

  // Each key once, but `fault`. Errors (ErrorCode::config): a key that there is not, with the
  // nearest; a key that is there twice; those of the values.
  Result<Settings> parse(std::string_view text) const {
    Settings settings;
    std::vector<std::string> seen;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(';'), text.size());
      const std::string_view setting = trimmed(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (!setting.empty()) RETURN_IF_ERROR(take(setting, seen, settings));
    }
    return settings;
  }

 private:
  struct Key {
    std::string name;
    Parse parse;
  };

  Status take(std::string_view setting, std::vector<std::string>& seen, Settings& settings) const {
    const std::string name = key_of(setting);
    const auto key =
        std::find_if(keys_.begin(), keys_.end(), [&](const Key& one) { return one.name == name; });
    if (key == keys_.end())
      return make_error(ErrorCode::config, "{}: there is no key '{}'{}", variable_, name,
                        did_you_mean(name, names()));
    if (name != "fault" && std::find(seen.begin(), seen.end(), name) != seen.end())
      return make_error(ErrorCode::config, "{}: {} is there twice", variable_, name);
    seen.push_back(name);
    return key->parse(value_of(setting), settings);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Key& key : keys_) names.push_back(key.name);
    return names;
  }

  const char* variable_;
  std::vector<Key> keys_;
};

}  // namespace sluice::soft
