#include "cli/simulate_report.h"

#include <algorithm>
#include <map>

#include "base/figure_text.h"
#include "cli/paint.h"
#include "core/plan/run_plan.h"
#include "profiler/analyze/phase.h"

namespace sluice::cli {
namespace {

using simulate::Phase;

constexpr std::size_t kRead = 0;
constexpr std::size_t kWrite = 1;
// A resource that is busy for less than this share of a phase does not bound it; the order of
// operations does.
constexpr double kBound = 0.85;
constexpr int kBarColumns = 24;

struct Busy {
  std::string what;
  double seconds = 0;  // of the busiest of its kind
};

// Most seconds first.
std::vector<Busy> busiest(const plan::RunPlan& plan, const simulate::SimulatedStep& step,
                          std::size_t phase) {
  std::map<std::string, double> by_kind;
  const auto add = [&](const auto& uses, const char* what) {
    for (const auto& use : uses) {
      double& most = by_kind[platform::kind_of(plan.platform, use.name) + what];
      most = std::max(most, use.busy_seconds[phase]);
    }
  };
  add(step.links, " link");
  add(step.engines, " kernels");
  std::vector<Busy> sorted;
  for (const auto& [what, seconds] : by_kind) sorted.push_back({what, seconds});
  std::ranges::stable_sort(sorted, std::greater<>(), &Busy::seconds);
  return sorted;
}

std::string phase_lines(const plan::RunPlan& plan, const simulate::SimulatedStep& step) {
  std::string text;
  for (std::size_t phase = 0; phase < simulate::kPhaseCount; ++phase) {
    const double seconds = step.seconds[phase];
    text += fmt::format(
        "  {:<10} {} {:>3.0f} %  {:>9}", simulate::phase_name(static_cast<Phase>(phase)),
        bar(seconds / step.total_seconds, kBarColumns, analyze::kPhases[phase].colour.dark),
        100 * seconds / step.total_seconds, format_seconds(seconds));
    const std::vector<Busy> busy = busiest(plan, step, phase);
    if (seconds > 0 && busy[0].seconds > 0) {
      text += fmt::format("   {} {:.0f} % busy", busy[0].what, 100 * busy[0].seconds / seconds);
    }
    text += "\n";
  }
  return text;
}

// Where forward or backward waited for activations.
std::string wait_lines(const simulate::SimulatedStep& step) {
  const auto& [out, back] = step.activation_wait_seconds;
  if (out + back <= 0) return "";
  return fmt::format("Waits for activations: {} for them to leave, {} for them to come back.\n",
                     format_seconds(out), format_seconds(back));
}

std::string byte_lines(const plan::RunPlan& plan, const simulate::SimulatedStep& step) {
  std::map<std::string, std::array<std::int64_t, 2>> by_kind;
  for (const simulate::LinkUse& link : step.links) {
    auto& sum = by_kind[platform::kind_of(plan.platform, link.name)];
    for (const auto& phase : link.size_bytes) {
      sum[kRead] += phase[kRead];
      sum[kWrite] += phase[kWrite];
    }
  }
  const auto parameters = static_cast<double>(plan.layout.parameter_count);
  std::string text = "Bytes a parameter and step:        read    write\n";
  for (const auto& [kind, bytes] : by_kind) {
    if (bytes[kRead] + bytes[kWrite] == 0) continue;
    text += fmt::format("  {:<28} {:>9.2f} {:>8.2f}\n", kind + " link",
                        static_cast<double>(bytes[kRead]) / parameters,
                        static_cast<double>(bytes[kWrite]) / parameters);
  }
  return text;
}

std::string life_text(double seconds) {
  constexpr double kDay = 24 * 3600;
  if (seconds < kDay) return format_seconds(seconds);
  const double years = seconds / simulate::kSecondsOfYear;
  if (years < 1) return fmt::format("{:.3g} days", seconds / kDay);
  if (years < 100) return fmt::format("{:.3g} years", years);
  return format_whole(static_cast<std::int64_t>(std::min(years, 1e18))) + " years";
}

}  // namespace

std::string wear_text(const plan::RunPlan& plan, const simulate::SimulatedStep& step) {
  const std::vector<simulate::DriveWear> wear = simulate::drive_wear(plan.platform, step);
  if (wear.empty()) return "";
  const auto first = std::ranges::min_element(wear, {}, &simulate::DriveWear::life_steps);
  if (first->written_bytes == 0) return "\nWear: a step writes nothing to a drive.\n";
  const auto steps = static_cast<std::int64_t>(first->life_steps());
  return fmt::format(
      "\nWear: a step writes {} to {}{}; what it bears, {}, is written after {} step{}, {} "
      "without a pause.\n",
      format_bytes(first->written_bytes), first->drive,
      wear.size() > 1 ? ", which lasts the shortest" : "", format_bytes(first->endurance_bytes),
      format_whole(steps), steps == 1 ? "" : "s", life_text(first->life_seconds()));
}

std::string simulate_verdict(const plan::RunPlan& plan, const simulate::SimulatedStep& step) {
  const std::size_t phase = static_cast<std::size_t>(
      std::max_element(step.seconds.begin(), step.seconds.end()) - step.seconds.begin());
  const double seconds = step.seconds[phase];
  const std::vector<Busy> busy = busiest(plan, step, phase);
  const std::string name = simulate::phase_name(static_cast<Phase>(phase));
  const double share = busy[0].seconds / seconds;
  const std::string next =
      busy.size() > 1 && busy[1].seconds > 0
          ? fmt::format("; next: {}, {:.0f} %", busy[1].what, 100 * busy[1].seconds / seconds)
          : "";
  if (share >= kBound) {
    return fmt::format("The {} phase is bound by the {} ({:.0f} % busy){}.\n", name, busy[0].what,
                       100 * share, next);
  }
  return fmt::format(
      "In the {} phase nothing is busy all the time: most is the {} ({:.0f} %){}.\nWhat does not "
      "overlap costs {}: the pipeline bounds it.\n",
      name, busy[0].what, 100 * share, next, format_seconds(seconds - busy[0].seconds));
}

// A run whose steps do not become alike says so, if they differ by more than is rounded here.
std::string varying(const simulate::SimulatedStep& step) {
  const auto dur_ns = [](const simulate::StepTimes& times) {
    return times.end_ns - times.start_ns;
  };
  const auto [least, most] = std::ranges::minmax(step.steps, {}, dur_ns);
  if (dur_ns(most) * 50 <= dur_ns(least) * 51) return "";
  return fmt::format(" in the mean, from {} to {}", format_duration(dur_ns(least)),
                     format_duration(dur_ns(most)));
}

std::string simulate_report_text(const plan::RunPlan& plan, const simulate::SimulatedStep& step,
                                 TimeNs dur_ns) {
  const auto devices = plan.config.offload.devices;
  const auto ranks = plan.config.batch.rank_count;
  std::string text = fmt::format(
      "SIMULATED: {} ({} parameters) on {}\n{} · {} · {} device{} · batch {} x {}, subgroups of "
      "{}{}\n\n",
      plan.shape.name, format_count(static_cast<double>(plan.layout.parameter_count)),
      plan.platform.name, settings::value_of(plan.config, "method"),
      settings::value_of(plan.config, "pipeline"), devices, devices == 1 ? "" : "s",
      plan.config.batch.batch, plan.config.batch.sequence,
      format_count(static_cast<double>(plan.geometry.subgroup_elements)),
      ranks > 1 ? fmt::format(" · one of {} ranks", ranks) : "");
  text += fmt::format("A step takes {}{}:\n", format_seconds(step.total_seconds), varying(step));
  text += phase_lines(plan, step) + "\n" + simulate_verdict(plan, step) + wait_lines(step) + "\n" +
          byte_lines(plan, step) + wear_text(plan, step);
  return text + fmt::format("\n{} operations, simulated in {}.", format_whole(step.operation_count),
                            format_duration(dur_ns));
}

}  // namespace sluice::cli
