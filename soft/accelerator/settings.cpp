#include "soft/accelerator/settings.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>

#include "base/nearest.h"
#include "base/setting_text.h"
#include "soft/accelerator/soft_accelerator.h"

namespace sluice::soft_accelerator {
namespace {

constexpr const char* kVariable = SLUICE_SOFT_ACCELERATOR_VARIABLE;

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
    return make_error(ErrorCode::config, "{}: {}='{}' is no number from {} to {}", kVariable, key,
                      text, range.least, range.most);
  value = parsed;
  return ok_status();
}

// "256MiB", "4096".
Status parse_size(std::string_view key, std::string_view text, std::int64_t& bytes) {
  std::int64_t unit = 1;
  for (const auto& [suffix, shift] : {std::pair{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}) {
    if (!text.ends_with(suffix)) continue;
    unit = std::int64_t{1} << shift;
    text.remove_suffix(3);
    break;
  }
  std::int64_t count = 0;
  RETURN_IF_ERROR(parse_number(key, text, {1, 1e12 / static_cast<double>(unit)}, count));
  bytes = count * unit;
  return ok_status();
}

// "oom@5", "lost@2/device1".
Status parse_fault(std::string_view text, Settings& settings) {
  static const std::vector<std::string> names = {"oom", "copy", "lost", "stuck"};
  const std::size_t sign = text.find('@');
  if (sign == std::string_view::npos)
    return make_error(ErrorCode::config, "{}: fault='{}' has no @EVENT", kVariable, text);
  const std::string name(text.substr(0, sign));
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    return make_error(ErrorCode::config, "{}: there is no fault '{}'{}", kVariable, name,
                      did_you_mean(name, names));
  Fault fault{.kind = static_cast<FaultKind>(found - names.begin())};
  std::string_view event = text.substr(sign + 1);
  const std::size_t slash = event.find("/device");
  if (slash != std::string_view::npos) {
    RETURN_IF_ERROR(parse_number("fault", event.substr(slash + 7), {0, 7}, fault.device));
    event = event.substr(0, slash);
  }
  RETURN_IF_ERROR(parse_number("fault", event, {1, 1e12}, fault.event));
  settings.faults.push_back(fault);
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
      number_key("devices", &Settings::devices, {1, 8}),
      {"cap", [](std::string_view value,
                 Settings& settings) { return parse_size("cap", value, settings.cap_bytes); }},
      number_key("in_rate", &Settings::in_bytes_per_s, {0, 1e15}),
      number_key("out_rate", &Settings::out_bytes_per_s, {0, 1e15}),
      number_key("seed", &Settings::seed, {0, 1e18}),
      number_key("delay_us", &Settings::delay_us, {0, 1e6}),
      number_key("threads", &Settings::threads, {0, 1024}),
      {"fault", parse_fault},
      {"counters",
       [](std::string_view value, Settings& settings) {
         settings.counters_path = value;
         return ok_status();
       }},
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
  const auto key =
      std::find_if(keys().begin(), keys().end(), [&](const Key& k) { return k.name == name; });
  if (key == keys().end())
    return make_error(ErrorCode::config, "{}: there is no key '{}'{}", kVariable, name,
                      did_you_mean(name, key_names()));
  if (name != "fault" && std::find(seen.begin(), seen.end(), name) != seen.end())
    return make_error(ErrorCode::config, "{}: {} is there twice", kVariable, name);
  seen.push_back(name);
  return key->parse(value_of(setting), settings);
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

}  // namespace sluice::soft_accelerator
