#include "soft/smartssd/settings.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>

#include "base/nearest.h"
#include "base/setting_text.h"

namespace sluice::soft_smartssd {

namespace {

struct NumberRange {
  double least;
  double most;
};

template <typename T>
Status parse_number(std::string_view key, std::string_view text, NumberRange range, T& value) {
  T parsed{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), parsed);
  const auto number = static_cast<double>(parsed);
  const bool is_good = end.ec == std::errc() && end.ptr == text.data() + text.size() &&
                       number >= range.least && number <= range.most;
  if (!is_good)
    return make_error(ErrorCode::config, "{}: {}='{}' is no number from {} to {}",
                      kSettingsVariable, key, text, range.least, range.most);
  value = parsed;
  return ok_status();
}

// Inside of a function: XRT's library reads settings while it is loaded, before this file's own
// constants would be made.
const std::vector<std::string>& fault_names() {
  static const std::vector<std::string> names = {"hang", "memory_error", "lost", "allocation",
                                                 "unreachable_p2p"};
  return names;
}
static_assert(static_cast<int>(FaultKind::unreachable_p2p) + 1 == kFaultKindCount);

// `hang@3`, `lost@5/device1`, `allocation~0.01`.
Status parse_fault(std::string_view text, Settings& settings) {
  FaultRule rule;
  std::string_view when = text;
  const std::size_t slash = text.find("/device");
  if (slash != std::string_view::npos) {
    RETURN_IF_ERROR(parse_number("fault", text.substr(slash + 7), {0, 15}, rule.device));
    when = text.substr(0, slash);
  }
  const std::size_t sign = when.find_first_of("@~");
  if (sign == std::string_view::npos)
    return make_error(ErrorCode::config, "{}: fault='{}' has neither @EVENT nor ~PROBABILITY",
                      kSettingsVariable, text);
  const std::string name(when.substr(0, sign));
  std::size_t kind = 0;
  while (kind < fault_names().size() && fault_names()[kind] != name) ++kind;
  if (kind == fault_names().size())
    return make_error(ErrorCode::config, "{}: there is no fault '{}'{}", kSettingsVariable, name,
                      did_you_mean(name, fault_names()));
  rule.kind = static_cast<FaultKind>(kind);
  const std::string_view number = when.substr(sign + 1);
  RETURN_IF_ERROR(when[sign] == '@' ? parse_number("fault", number, {1, 1e9}, rule.event)
                                    : parse_number("fault", number, {0, 1}, rule.probability));
  settings.faults.push_back(rule);
  return ok_status();
}

struct Key {
  const char* name;
  std::function<Status(std::string_view value, Settings& settings)> parse;
};

template <typename T>
Key number_key(const char* name, T Settings::* member, NumberRange range) {
  return {name, [=](std::string_view value, Settings& settings) {
            return parse_number(name, value, range, settings.*member);
          }};
}

const std::vector<Key>& keys() {
  static const std::vector<Key> table = {
      number_key("devices", &Settings::devices, {1, 16}),
      number_key("memory_mib", &Settings::memory_mib, {1, 4096}),
      number_key("seed", &Settings::seed, {0, 1e18}),
      {"platform",
       [](std::string_view value, Settings& settings) {
         settings.platform = value;
         return ok_status();
       }},
      number_key("kernel_elements_per_s", &Settings::kernel_elements_per_s, {0, 1e15}),
      number_key("sync_mib_per_s", &Settings::sync_mib_per_s, {0, 1e9}),
      number_key("completion_delay_us", &Settings::completion_delay_us, {0, 1e6}),
      number_key("hang_ms", &Settings::hang_ms, {0, 1e6}),
      {"fault", parse_fault},
  };
  return table;
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const Key& key : keys()) names.emplace_back(key.name);
  return names;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") + 1 - first);
}

Status parse_setting(std::string_view setting, std::vector<std::string>& seen, Settings& settings) {
  const std::string name = key_of(setting);
  const std::string value = value_of(setting);
  for (const Key& key : keys()) {
    if (key.name != name) continue;
    for (const std::string& earlier : seen) {
      if (earlier == name && name != "fault")
        return make_error(ErrorCode::config, "{}: {} is there twice", kSettingsVariable, name);
    }
    seen.push_back(name);
    return key.parse(value, settings);
  }
  return make_error(ErrorCode::config, "{}: there is no key '{}'{}", kSettingsVariable, name,
                    did_you_mean(name, key_names()));
}

}  // namespace

Result<Settings> parse_settings(std::string_view text) {
  Settings settings;
  std::vector<std::string> seen;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    const std::string_view setting = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!setting.empty()) RETURN_IF_ERROR(parse_setting(setting, seen, settings));
  }
  return settings;
}

Result<Settings> settings_of_environment() {
  const char* text = std::getenv(kSettingsVariable);
  return parse_settings(text == nullptr ? "" : text);
}

}  // namespace sluice::soft_smartssd
