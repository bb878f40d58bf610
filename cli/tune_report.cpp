#include "cli/tune_report.h"

#include <cmath>

#include "base/units.h"
#include "cli/fit_report.h"
#include "cli/simulate_report.h"
#include "core/tune/fitted_run.h"
#include "core/tune/machine_tuning.h"

namespace sluice::cli {
namespace {

// Empty where nothing was recorded.
std::string fit_text(const answers::TuningAnswer& answer) {
  const tune::FittedRun* fitted = answer.tuning.fitted_run();
  if (fitted == nullptr) return "";
  const std::string& file = answer.written_platform;
  return fit_report_text(*fitted) + (file.empty() ? "" : "It is written to " + file + ".\n") + "\n";
}

std::string change_lines(const tune::TunedMachine& tuned, double time_scale) {
  std::string text;
  if (!tuned.result.changes.empty()) text = "(worth: what is lost if only this is left out)\n";
  for (const tune::TuneChange& change : tuned.result.changes) {
    text +=
        fmt::format("  --set {:<26} was {:<8} {}\n", change.key + "=" + change.to, change.from,
                    std::isinf(change.worth_seconds)
                        ? "needed by the other changes"
                        : "worth " + format_seconds(change.worth_seconds * time_scale) + " a step");
  }
  return text;
}

std::string settings_of(const tune::TunedMachine& tuned) {
  std::string text;
  for (const char* key : {"method", "pipeline", "density"}) {
    if (!tuned.result.best.contains(key)) continue;
    text += (text.empty() ? "" : " · ") + tuned.result.best.at(key);
  }
  return text;
}

// One number of devices beside the first.
std::string device_row(const tune::TunedMachine& tuned, const tune::TunedMachine& first,
                       double time_scale, bool is_best) {
  const double price = tuned.best.platform.price_usd();
  const double first_price = first.best.platform.price_usd();
  const bool has_prices = first_price > 0;
  const double cost = price * tuned.after.total_seconds / (first_price * first.after.total_seconds);
  return fmt::format("{:>7} {:>9} {:>8.2f} {:>10} {:>6}  {}{}\n", tuned.best.config.offload.devices,
                     format_seconds(tuned.after.total_seconds * time_scale),
                     first.after.total_seconds / tuned.after.total_seconds,
                     has_prices ? fmt::format("{:.0f} USD", price) : "-",
                     has_prices ? fmt::format("{:.2f}", cost) : "-", settings_of(tuned),
                     has_prices && is_best ? "  <- cheapest" : "");
}

}  // namespace

std::string tune_text(const answers::TuningAnswer& answer, const tune::TunedMachine& tuned) {
  const bool is_fitted = answer.tuning.fitted_run() != nullptr;
  const double time_scale = answer.tuning.time_scale();
  const double before = tuned.before.total_seconds * time_scale;
  const double after = tuned.after.total_seconds * time_scale;
  std::string text = fit_text(answer);
  text += fmt::format(
      "SIMULATED: {} on {}{}, {} device{}\nA step: {} -> {}, {:.2f} times as fast.\n\n",
      tuned.best.shape.name, tuned.best.platform.name, is_fitted ? " as fitted" : "",
      tuned.best.config.offload.devices, tuned.best.config.offload.devices == 1 ? "" : "s",
      format_seconds(before), format_seconds(after), before / after);
  const double error = is_fitted ? std::abs(answer.tuning.fitted_run()->fit.step.error_after()) : 0;
  if (is_fitted && !tuned.result.changes.empty() && std::abs(after / before - 1) <= error) {
    text += fmt::format(
        "That is within how far the fitted platform is off ({:.1f} %): nobody knows what it "
        "does.\n\n",
        error * 100);
  }
  if (tuned.result.changes.empty()) text += "Nothing to change: no knob makes it shorter.\n";
  text += change_lines(tuned, time_scale);
  if (is_fitted && tuned.changes("method")) {
    text += "  The other method was never run here: its figures come from the platform file.\n";
  }
  if (is_fitted && tuned.changes("subgroup_elements")) {
    text +=
        "  A state that exists keeps its subgroup_elements: to resume this run, add "
        "--hold subgroup_elements.\n";
  }
  text += "\n" + simulate_verdict(tuned.best, tuned.after);
  if (tuned.compact_seconds && *tuned.compact_seconds < tuned.after.total_seconds) {
    text += fmt::format(
        "\nWith --set state_format=compact a step takes {}, with other numbers "
        "(docs/compact_state.md).\n",
        format_seconds(*tuned.compact_seconds * time_scale));
  }
  return text + fmt::format("\n{} of {} combinations were simulated.",
                            tuned.result.evaluation_count, tuned.combination_count());
}

std::string devices_text(const answers::TuningAnswer& answer,
                         std::span<const tune::TunedMachine> machines) {
  const tune::TunedMachine& first = machines.front();
  const tune::TunedMachine& best = tune::best_buy(machines);
  std::string text = fit_text(answer);
  text += fmt::format(
      "SIMULATED: {} on {}, each number of devices tuned\n{:>7} {:>9} {:>8} {:>10} {:>6}  "
      "settings\n",
      first.best.shape.name, first.best.platform.name, "devices", "a step", "speed-up", "price",
      "cost");
  for (const tune::TunedMachine& tuned : machines) {
    text += device_row(tuned, first, answer.tuning.time_scale(), &tuned == &best);
  }
  if (first.best.platform.price_usd() > 0) {
    return text + "Cost of a step: price x time, the first row being 1.\n";
  }
  return text + "The platform file states no prices.\n";
}

}  // namespace sluice::cli
