#include "cli/plan_report.h"

#include <cmath>

#include "base/units.h"
#include "cli/simulate_report.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

using answers::PlacementAnswer;

constexpr int kColumns = 80;
constexpr std::size_t kSettingColumns = 28;

std::string head_lines(const PlacementAnswer& answer) {
  const tune::TierPlan& plan = answer.plan;
  const auto devices = plan.run.config.offload.devices;
  std::string text =
      fmt::format("PLANNED by simulated steps: {} on {}{}, {} device{}\n", plan.run.shape.name,
                  plan.run.platform.name, answer.is_fitted ? " as fitted" : "", devices,
                  devices == 1 ? "" : "s");
  text += fmt::format("A step: {}", format_seconds(plan.step.total_seconds * answer.time_scale));
  text += std::isinf(plan.start_seconds)
              ? ". As it was, it would not fit"
              : fmt::format(", was {}", format_seconds(plan.start_seconds * answer.time_scale));
  text += fmt::format(
      ".\nLower bound with these settings: {}, set by {}. This plan is {:.0f} % above it.\n",
      format_seconds(plan.bound.seconds * answer.time_scale), plan.bound.what,
      100 * answer.above_bound());
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
std::string setting_lines(const PlacementAnswer& answer) {
  std::string text;
  std::string unchanged;
  for (const tune::PlannedSetting& setting : answer.plan.settings) {
    const std::string row = setting.key + "=" + setting.value;
    if (!setting.is_changed()) {
      unchanged += (unchanged.empty() ? "" : ", ") + row;
      continue;
    }
    const std::string note = worth_text(setting, answer.time_scale);
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

std::string link_lines(const PlacementAnswer& answer) {
  const tune::TierPlan& plan = answer.plan;
  std::string text = "\nBytes of a step:                 read        write\n";
  for (const auto& [kind, bytes] : answers::bytes_by_kind(plan)) {
    if (bytes.read_bytes + bytes.write_bytes == 0) continue;
    text += fmt::format("  {:<24} {:>12} {:>12}\n", kind + " link", format_bytes(bytes.read_bytes),
                        format_bytes(bytes.write_bytes));
  }
  if (plan.moved_bytes == 0) return text + "  No activation leaves memory.\n";
  text += fmt::format(
      "  Activations that leave are {} of it. Forward and backward wait {} for them, {:.1f} % of a "
      "step.\n",
      format_bytes(plan.moved_bytes), format_seconds(plan.stall_seconds * answer.time_scale),
      100 * plan.stall_seconds / plan.step.total_seconds);
  return text;
}

std::string case_lines(const PlacementAnswer& answer) {
  if (answer.plan.special_cases.empty()) return "";
  std::string text = "\nWith the layers as published systems choose them:\n";
  for (const tune::SpecialCase& one : answer.plan.special_cases) {
    text +=
        fmt::format("  {:<16} {:>10}  {:<13} ", one.name,
                    std::isinf(one.seconds) ? "-" : format_seconds(one.seconds * answer.time_scale),
                    one.fits ? "fits" : "does not fit");
    text += one.activations + "\n";
  }
  return text;
}

std::string search_line(const tune::TierPlan& plan) {
  return fmt::format("\n{} step{} simulated{}.\n", plan.simulated_count,
                     plan.simulated_count == 1 ? "" : "s",
                     plan.is_exhaustive ? "; no other choice of layers gains 0.2 %" : "");
}

}  // namespace

std::string plan_text(const PlacementAnswer& answer) {
  return head_lines(answer) + setting_lines(answer) + memory_lines(answer.plan) +
         link_lines(answer) + case_lines(answer) + wear_text(answer.plan.run, answer.plan.step) +
         search_line(answer.plan) + "\n  " + command_lines(answer.full_command(), kColumns, 2) +
         "\n";
}

}  // namespace sluice::cli
