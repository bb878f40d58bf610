#include "core/answers/placement.h"

#include <algorithm>

#include "base/setting_text.h"
#include "base/shell_quoted.h"
#include "core/answers/simulated_step.h"

namespace sluice::answers {
namespace {

constexpr auto kReadAt = static_cast<std::size_t>(platform::Direction::read);
constexpr auto kWriteAt = static_cast<std::size_t>(platform::Direction::write);

std::vector<std::string> changed_settings(const tune::TierPlan& plan) {
  std::vector<std::string> settings;
  for (const tune::PlannedSetting& setting : plan.settings) {
    if (setting.is_changed()) settings.push_back(setting.key + "=" + setting.value);
  }
  return settings;
}

}  // namespace

// A bound is never longer than a step but for rounding.
double PlacementAnswer::above_bound() const {
  return std::max(0.0, plan.step.total_seconds / plan.bound.seconds - 1);
}

std::string PlacementAnswer::full_command() const {
  const std::vector<std::string> changed = changed_settings(plan);
  std::string text = command;
  for (const std::string& setting : overrides) {
    const std::string key = key_of(setting);
    const bool is_planned = std::ranges::any_of(
        changed, [&](const std::string& other) { return key_of(other) == key; });
    if (!is_planned) text += " --set " + shell_quoted(setting);
  }
  for (const std::string& setting : changed) text += " --set " + shell_quoted(setting);
  return text;
}

std::map<std::string, KindBytes> bytes_by_kind(const tune::TierPlan& plan) {
  std::map<std::string, KindBytes> kinds;
  for (const simulate::LinkUse& link : plan.step.links) {
    KindBytes& sum = kinds[platform::kind_of(plan.run.platform, link.name)];
    for (const auto& phase : link.size_bytes) {
      sum.read_bytes += phase[kReadAt];
      sum.write_bytes += phase[kWriteAt];
    }
  }
  return kinds;
}

Json to_json(const PlacementAnswer& answer) {
  const tune::TierPlan& plan = answer.plan;
  Json json;
  json["simulated"] = true;
  json["model"] = plan.run.shape.name;
  json["platform"] = plan.run.platform.name;
  json["seconds"] = {{"start", plan.start_seconds * answer.time_scale},
                     {"planned", plan.step.total_seconds * answer.time_scale},
                     {"bound", plan.bound.seconds * answer.time_scale},
                     {"stall", plan.stall_seconds * answer.time_scale}};
  json["bound"] = {{"what", plan.bound.what}, {"distance", answer.above_bound()}};
  json["settings"] = Json::array();
  for (const tune::PlannedSetting& setting : plan.settings) {
    json["settings"].push_back({{"key", setting.key},
                                {"value", setting.value},
                                {"from", setting.from},
                                {"decides", setting.what},
                                {"changed", setting.is_changed()}});
    json["settings"].back()["worth_seconds"] = nullptr;
    if (!setting.worth_seconds) continue;
    json["settings"].back()["worth_seconds"] = *setting.worth_seconds * answer.time_scale;
  }
  for (const tune::MemoryUse& use : plan.memory.uses) {
    json["memory"][use.name] = {
        {"peak_bytes", use.peak_bytes}, {"cap_bytes", use.cap_bytes}, {"setting", use.setting}};
    if (!use.limit.empty()) json["memory"][use.name]["limit"] = use.limit;
  }
  for (const auto& [kind, bytes] : bytes_by_kind(plan)) {
    json["bytes"][kind] = {{"read", bytes.read_bytes}, {"write", bytes.write_bytes}};
  }
  json["activations"] = {{"moved_bytes", plan.moved_bytes},
                         {"resident_bytes", plan.resident_bytes}};
  for (const tune::SpecialCase& one : plan.special_cases) {
    json["special_cases"].push_back({{"name", one.name},
                                     {"activations", one.activations},
                                     {"seconds", one.seconds * answer.time_scale},
                                     {"fits", one.fits}});
  }
  for (const simulate::DriveWear& wear : simulate::drive_wear(plan.run.platform, plan.step)) {
    json["wear"].push_back(to_json(wear));
  }
  json["simulations"] = plan.simulated_count;
  json["exhaustive"] = plan.is_exhaustive;
  json["stopped"] = plan.was_stopped;
  json["command"] = answer.full_command();
  return json;
}

}  // namespace sluice::answers
