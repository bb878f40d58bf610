#include "soft/smartssd/settings.h"

#include <cstdlib>
#include <string>

#include "base/nearest.h"
#include "soft/setting_keys.h"

namespace sluice::soft_smartssd {

namespace {

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
    RETURN_IF_ERROR(soft::parse_number(kSettingsVariable, "fault", text.substr(slash + 7), {0, 15},
                                       rule.device));
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
  RETURN_IF_ERROR(
      when[sign] == '@'
          ? soft::parse_number(kSettingsVariable, "fault", number, {1, 1e9}, rule.event)
          : soft::parse_number(kSettingsVariable, "fault", number, {0, 1}, rule.probability));
  settings.faults.push_back(rule);
  return ok_status();
}

const soft::SettingKeys<Settings>& keys() {
  static const auto table =
      soft::SettingKeys<Settings>(kSettingsVariable)
          .number("devices", &Settings::devices, {1, 16})
          .number("memory_mib", &Settings::memory_mib, {1, 4096})
          .number("seed", &Settings::seed, {0, 1e18})
          .text("platform", &Settings::platform)
          .number("kernel_elements_per_s", &Settings::kernel_elements_per_s, {0, 1e15})
          .number("sync_mib_per_s", &Settings::sync_mib_per_s, {0, 1e9})
          .number("completion_delay_us", &Settings::completion_delay_us, {0, 1e6})
          .number("hang_ms", &Settings::hang_ms, {0, 1e6})
          .key("fault", parse_fault);
  return table;
}

}  // namespace

Result<Settings> parse_settings(std::string_view text) { return keys().parse(text); }

Result<Settings> settings_of_environment() {
  const char* text = std::getenv(kSettingsVariable);
  return parse_settings(text == nullptr ? "" : text);
}

}  // namespace sluice::soft_smartssd
