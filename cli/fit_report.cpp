#include "cli/fit_report.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace sluice::cli {
namespace {

using tune::FittedRate;
using tune::PhaseFit;
using tune::PlatformFit;

// The same rate of all devices.
struct RateGroup {
  std::string name;  // "drive read"
  std::string unit;
  int count = 0;
  double before_low = 0, before_high = 0;
  double after_low = 0, after_high = 0;

  double change() const { return (after_low + after_high) / (before_low + before_high) - 1; }
};

bool is_link(const FittedRate& rate) { return rate.key == "read" || rate.key == "write"; }

std::string unit_of(const FittedRate& rate) {
  if (is_link(rate) || rate.key == "checksum") return "B/s";
  return rate.key == "matmul" ? "FLOP/s" : "elem/s";
}

// "drive link", "engine", "host"
std::string owner_text(const PlatformFit& fit, const FittedRate& rate) {
  return platform::kind_of(fit.platform, rate.owner) + (is_link(rate) ? " link" : "");
}

std::vector<RateGroup> fitted_groups(const PlatformFit& fit) {
  std::vector<RateGroup> groups;
  for (const FittedRate& rate : fit.rates) {
    if (!rate.is_fitted) continue;
    const std::string name = owner_text(fit, rate) + " " + rate.key;
    auto group = std::ranges::find(groups, name, &RateGroup::name);
    if (group == groups.end()) {
      groups.push_back({name, unit_of(rate), 0, rate.before, rate.before, rate.after, rate.after});
      group = groups.end() - 1;
    }
    group->count += 1;
    group->before_low = std::min(group->before_low, rate.before);
    group->before_high = std::max(group->before_high, rate.before);
    group->after_low = std::min(group->after_low, rate.after);
    group->after_high = std::max(group->after_high, rate.after);
  }
  return groups;
}

std::string range(double low, double high, const std::string& unit) {
  const std::string from = format_rate(low, unit);
  const std::string to = format_rate(high, unit);
  return from == to ? from : from + " to " + to;
}

std::string percent_of_share(double share) {
  if (!std::isfinite(share)) return "-";  // of a phase that takes no time
  const long rounded = std::lround(share * 100);
  return rounded == 0 ? "0 %" : fmt::format("{:+d} %", rounded);
}

// "  drive link read, write" a line for each owner.
std::string unfitted_lines(const PlatformFit& fit) {
  std::vector<std::pair<std::string, std::string>> owners;
  for (const FittedRate& rate : fit.rates) {
    if (rate.is_fitted) continue;
    const std::string owner = owner_text(fit, rate);
    auto of = std::ranges::find(owners, owner, &std::pair<std::string, std::string>::first);
    if (of == owners.end()) {
      owners.emplace_back(owner, rate.key);
    } else if ((", " + of->second + ",").find(", " + rate.key + ",") == std::string::npos) {
      of->second += ", " + rate.key;
    }
  }
  std::string text;
  for (const auto& [owner, keys] : owners) text += fmt::format("  {:<14} {}\n", owner, keys);
  return text;
}

std::string rate_lines(const PlatformFit& fit) {
  std::string text = fmt::format("{:<26} {:>19} {:>24}\n",
                                 "Rates measured in this run:", "platform file", "fitted");
  for (const RateGroup& group : fitted_groups(fit)) {
    const std::string name =
        group.count > 1 ? fmt::format("{} ({})", group.name, group.count) : group.name;
    text += fmt::format("  {:<24} {:>19} {:>24} {:>6}\n", name,
                        range(group.before_low, group.before_high, group.unit),
                        range(group.after_low, group.after_high, group.unit),
                        percent_of_share(group.change()));
  }
  const std::string others = unfitted_lines(fit);
  if (others.empty()) return text;
  return text + "Not measured by this run, taken from the platform file:\n" + others;
}

// Times are printed by the recording's own clock, which `scale` makes of the platform's.
std::string phase_line(const std::string& name, const PhaseFit& phase, double scale) {
  return fmt::format("  {:<9} {:>9}  {:>18} {:>10} {:>6} {:>10} {:>6}\n", name,
                     format_seconds(phase.recorded * scale),
                     fmt::format("{} to {}", format_seconds(phase.low * scale),
                                 format_seconds(phase.high * scale)),
                     format_seconds(phase.before * scale), percent_of_share(phase.error_before()),
                     format_seconds(phase.after * scale), percent_of_share(phase.error_after()));
}

std::string phase_lines(const PlatformFit& fit, double scale) {
  std::string text = fmt::format("  {:<9} {:>9}  {:>18} {:>17} {:>17}\n", "", "recorded",
                                 "10 % to 90 %", "simulated, file", "simulated, fitted");
  for (std::size_t phase = 0; phase < simulate::kPhaseCount; ++phase) {
    text += phase_line(simulate::phase_name(static_cast<simulate::Phase>(phase)), fit.phases[phase],
                       scale);
  }
  return text + phase_line("step", fit.step, scale);
}

std::string verdict(const PlatformFit& fit) {
  if (fit.is_good()) {
    return fmt::format("The fitted platform is {:.1f} % off in a whole step.\n",
                       100 * std::abs(fit.step.error_after()));
  }
  const std::size_t worst = fit.worst_phase();
  return fmt::format(
      "WARNING: also the fitted platform is {:.0f} % off in a whole step, and so may be all that "
      "follows.\nMost of it is in {} ({}).\n",
      100 * std::abs(fit.step.error_after()),
      simulate::phase_name(static_cast<simulate::Phase>(worst)),
      percent_of_share(fit.phases[worst].error_after()));
}

}  // namespace

std::string fit_report_text(const tune::FittedRun& fitted) {
  const auto& [run, fit] = fitted;
  std::string text =
      fmt::format("RECORDED: {} on {}, {} of {} step{}\n{}\n", run.name, run.platform.name,
                  fit.step_count, run.step_count, run.step_count == 1 ? "" : "s", run.mode);
  if (run.time_scale != 1) {
    text += fmt::format(
        "Times are the emulated clock's, {:g} times slower than the platform; rates are the "
        "platform's.\n",
        run.time_scale);
  }
  for (const std::string& caveat : run.caveats) text += caveat + "\n";
  return text + "\n" + phase_lines(fit, run.time_scale) + "\n" + rate_lines(fit) + "\n" +
         verdict(fit);
}

}  // namespace sluice::cli
