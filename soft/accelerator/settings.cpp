#include "soft/accelerator/settings.h"

#include <algorithm>
#include <string>

#include "base/nearest.h"
#include "soft/accelerator/soft_accelerator.h"
#include "soft/setting_keys.h"

namespace sluice::soft_accelerator {
namespace {

constexpr const char* kVariable = SLUICE_SOFT_ACCELERATOR_VARIABLE;

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
  RETURN_IF_ERROR(
      soft::parse_number(kVariable, key, text, {1, 1e12 / static_cast<double>(unit)}, count));
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
    RETURN_IF_ERROR(
        soft::parse_number(kVariable, "fault", event.substr(slash + 7), {0, 7}, fault.device));
    event = event.substr(0, slash);
  }
  RETURN_IF_ERROR(soft::parse_number(kVariable, "fault", event, {1, 1e12}, fault.event));
  settings.faults.push_back(fault);
  return ok_status();
}

const soft::SettingKeys<Settings>& keys() {
  static const auto table = soft::SettingKeys<Settings>(kVariable)
                                .number("devices", &Settings::devices, {1, 8})
                                .key("cap",
                                     [](std::string_view value, Settings& settings) {
                                       return parse_size("cap", value, settings.cap_bytes);
                                     })
                                .number("in_rate", &Settings::in_bytes_per_s, {0, 1e15})
                                .number("out_rate", &Settings::out_bytes_per_s, {0, 1e15})
                                .number("seed", &Settings::seed, {0, 1e18})
                                .number("delay_us", &Settings::delay_us, {0, 1e6})
                                .number("threads", &Settings::threads, {0, 1024})
                                .key("fault", parse_fault)
                                .text("counters", &Settings::counters_path);
  return table;
}

}  // namespace

Result<Settings> parse_settings(std::string_view text) { return keys().parse(text); }

}  // namespace sluice::soft_accelerator
