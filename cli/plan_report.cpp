#include "cli/plan_report.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/setting_text.h"
#include "base/shell_quoted.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/simulate_report.h"
#include "cli/terminal.h"
#include "core/simulate/drive_wear.h"

namespace sluice::cli {
namespace {

constexpr int kColumns = 80;
constexpr std::size_t kSettingColumns = 28;
constexpr auto kReadAt = static_cast<std::size_t>(platform::Direction::read);
constexpr auto kWriteAt = static_cast<std::size_t>(platform::Direction::write);

// "+12 %" of the bound; a bound is never longer than a step but for rounding.
double distance(const tune::TierPlan& plan) {
  return std::max(0.0, plan.step.total_seconds / plan.bound.seconds - 1);
}

std::string head_lines(const PlanReport& report) {
  const tune::TierPlan& plan = report.plan;
  const auto devices = plan.run.config.offload.devices;
  std::string text =
      fmt::format("PLANNED by simulated steps: {} on {}{}, {} device{}\n", plan.run.shape.name,
                  plan.run.platform.name, report.is_fitted ? " as fitted" : "", devices,
                  devices == 1 ? "" : "s");
  text += fmt::format("A step: {}", format_seconds(plan.step.total_seconds * report.time_scale));
  text += std::isinf(plan.start_seconds)
              ? ". As it was, it would not fit"
              : fmt::format(", was {}", format_seconds(plan.start_seconds * report.time_scale));
  text += fmt::format(
      ".\nLower bound with these settings: {}, set by {}. This plan is {:.0f} % above it.\n",
      format_seconds(plan.bound.seconds * report.time_scale), plan.bound.what,
      100 * distance(plan));
  if (plan.was_stopped) text += "Stopped early: this is the best that was found so far.\n";
  return text + "\n";
}

std::string worth_text(const tune::PlannedSetting& setting, double time_scale) {
  const std::string was = ", was " + setting.from;
  if (!setting.worth_seconds) return "was " + setting.from;
  if (std::isinf(*setting.worth_seconds)) return "needed to fit" + was;
  if (*setting.worth_seconds <= 0) return "as fast, and takes less" + was;
  return "worth " + format_seconds(*setting.worth_seconds * time_scale) + " a step" + was;
}

// Beside its worth where that fits a terminal, else above it.
std::string setting_lines(const PlanReport& report) {
  std::string text;
  std::string unchanged;
  for (const tune::PlannedSetting& setting : report.plan.settings) {
    const std::string row = setting.key + "=" + setting.value;
    if (!setting.is_changed()) {
      unchanged += (unchanged.empty() ? "" : ", ") + row;
      continue;
    }
    const std::string note = worth_text(setting, report.time_scale);
    text += row.size() <= kSettingColumns
                ? fmt::format("  {:<{}}  {}\n", row, kSettingColumns, note)
                : fmt::format("  {}\n      {}\n", row, note);
  }
  if (unchanged.empty()) return text;
  return text + "As they were, since no other value gains: " + unchanged + ".\n";
}

std::string memory_lines(const tune::TierPlan& plan) {
  std::string text = "\nMemory:                           peak          cap\n";
  for (const tune::MemoryUse& use : plan.memory.uses) {
    text += fmt::format("  {:<24} {:>12} {:>12}  {}\n", use.name, format_bytes(use.peak_bytes),
                        use.cap_bytes > 0 ? format_bytes(use.cap_bytes) : "none", use.setting);
    if (!use.limit.empty()) {
      text += "    " + wrapped("its cap: " + use.limit, kColumns - 4, "      ");
    }
  }
  return text;
}

struct KindBytes {
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
};

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

std::string link_lines(const PlanReport& report) {
  const tune::TierPlan& plan = report.plan;
  std::string text = "\nBytes of a step:                 read        write\n";
  for (const auto& [kind, bytes] : bytes_by_kind(plan)) {
    if (bytes.read_bytes + bytes.write_bytes == 0) continue;
    text += fmt::format("  {:<24} {:>12} {:>12}\n", kind + " link", format_bytes(bytes.read_bytes),
                        format_bytes(bytes.write_bytes));
  }
  if (plan.moved_bytes == 0) return text + "  No activation leaves memory.\n";
  text += fmt::format(
      "  Activations that leave are {} of it. Forward and backward wait {} for them, {:.1f} % of a "
      "step.\n",
      format_bytes(plan.moved_bytes), format_seconds(plan.stall_seconds * report.time_scale),
      100 * plan.stall_seconds / plan.step.total_seconds);
  return text;
}

std::string case_lines(const PlanReport& report) {
  if (report.plan.special_cases.empty()) return "";
  std::string text = "\nWith the layers as published systems choose them:\n";
  for (const tune::SpecialCase& one : report.plan.special_cases) {
    text +=
        fmt::format("  {:<16} {:>10}  {:<13} ", one.name,
                    std::isinf(one.seconds) ? "-" : format_seconds(one.seconds * report.time_scale),
                    one.fits ? "fits" : "does not fit");
    text += one.activations + "\n";
  }
  return text;
}

std::vector<std::string> changed_settings(const PlanReport& report) {
  std::vector<std::string> settings;
  for (const tune::PlannedSetting& setting : report.plan.settings) {
    if (setting.is_changed()) settings.push_back(setting.key + "=" + setting.value);
  }
  return settings;
}

std::string full_command(const PlanReport& report) {
  const std::vector<std::string> changed = changed_settings(report);
  std::string text = report.command;
  for (const std::string& setting : report.overrides) {
    const std::string key = key_of(setting);
    const bool is_planned = std::ranges::any_of(
        changed, [&](const std::string& other) { return key_of(other) == key; });
    if (!is_planned) text += " --set " + shell_quoted(setting);
  }
  for (const std::string& setting : changed) text += " --set " + shell_quoted(setting);
  return text;
}

std::string search_line(const tune::TierPlan& plan) {
  return fmt::format("\n{} step{} simulated{}.\n", plan.simulated_count,
                     plan.simulated_count == 1 ? "" : "s",
                     plan.is_exhaustive ? "; no other choice of layers gains 0.2 %" : "");
}

}  // namespace

std::string plan_text(const PlanReport& report) {
  return head_lines(report) + setting_lines(report) + memory_lines(report.plan) +
         link_lines(report) + case_lines(report) + wear_text(report.plan.run, report.plan.step) +
         search_line(report.plan) + "\n  " + command_lines(full_command(report), kColumns, 2) +
         "\n";
}

std::string plan_json(const PlanReport& report) {
  const tune::TierPlan& plan = report.plan;
  nlohmann::ordered_json json;
  json["simulated"] = true;
  json["model"] = plan.run.shape.name;
  json["platform"] = plan.run.platform.name;
  // An infinite time is written as null.
  json["seconds"] = {{"start", plan.start_seconds * report.time_scale},
                     {"planned", plan.step.total_seconds * report.time_scale},
                     {"bound", plan.bound.seconds * report.time_scale},
                     {"stall", plan.stall_seconds * report.time_scale}};
  json["bound"] = {{"what", plan.bound.what}, {"distance", distance(plan)}};
  json["settings"] = nlohmann::ordered_json::array();
  for (const tune::PlannedSetting& setting : plan.settings) {
    json["settings"].push_back({{"key", setting.key},
                                {"value", setting.value},
                                {"from", setting.from},
                                {"decides", setting.what},
                                {"changed", setting.is_changed()}});
    json["settings"].back()["worth_seconds"] = nullptr;
    if (!setting.worth_seconds) continue;
    json["settings"].back()["worth_seconds"] = *setting.worth_seconds * report.time_scale;
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
                                     {"seconds", one.seconds * report.time_scale},
                                     {"fits", one.fits}});
  }
  for (const simulate::DriveWear& wear : simulate::drive_wear(plan.run.platform, plan.step)) {
    json["wear"].push_back(wear_json(wear));
  }
  json["simulations"] = plan.simulated_count;
  json["exhaustive"] = plan.is_exhaustive;
  json["stopped"] = plan.was_stopped;
  json["command"] = full_command(report);
  return json_text(json, 2);
}

}  // namespace sluice::cli
