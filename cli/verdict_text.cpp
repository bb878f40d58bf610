#include "cli/verdict_text.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

constexpr int kBarMax = 28;

struct BarLine {
  std::string_view name;
  double share = 0;
};

// Causes worth a line, the largest first, and what is left as one.
std::vector<BarLine> bar_lines(const analyze::RunAnalysis& analysis) {
  constexpr double kWorthALine = 0.005;
  std::vector<BarLine> lines;
  double rest = 0;
  for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
    const double share = analysis.share[c];
    if (share < kWorthALine) {
      rest += share;
    } else {
      lines.push_back({analyze::cause_name(static_cast<analyze::Cause>(c)), share});
    }
  }
  std::ranges::stable_sort(lines, std::greater<>(), &BarLine::share);
  if (rest >= 0.0005) lines.push_back({"all others", rest});
  return lines;
}

std::string bars(const analyze::RunAnalysis& analysis, int columns) {
  std::vector<BarLine> lines = bar_lines(analysis);
  std::vector<double> shares;
  for (const BarLine& line : lines) shares.push_back(line.share);
  const std::vector<int> tenths = analyze::rounded_shares(shares, 1000);  // of a per cent
  const int bar_max = std::clamp(columns - 36, 4, kBarMax);
  double most = 0;
  for (const BarLine& line : lines) most = std::max(most, line.share);
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const BarLine& line = lines[i];
    const auto length = static_cast<std::size_t>(std::lround(line.share / most * bar_max));
    text += fmt::format(
        "  {:<14} {:<{}} {:>5.1f} %  {:>9}\n", line.name, std::string(length, '#'), bar_max,
        tenths[i] / 10.0,
        format_duration(static_cast<TimeNs>(line.share * static_cast<double>(analysis.dur))));
  }
  return text;
}

std::string prediction_lines(const Predictions& predictions, int columns) {
  if (!predictions.unavailable.empty()) {
    return wrapped("Nothing is predicted: " + predictions.unavailable, columns, "  ");
  }
  if (predictions.better.empty()) {
    return wrapped(
        "Turn next: no single setting is predicted to make a step shorter; "
        "`sluice tune` looks at several together.",
        columns, "  ");
  }
  std::string text;
  for (const Prediction& prediction : predictions.better) {
    const std::string& setting = prediction.settings.front();
    const std::size_t equals = setting.find('=');
    text += wrapped(
        fmt::format("{}: {} {} -> {}, predicted {:+.0f} % ({}): {}.",
                    text.empty() ? "Turn next" : "Or", setting.substr(0, equals),
                    prediction.from.front().substr(equals + 1), setting.substr(equals + 1),
                    prediction.change * 100,
                    format_duration(static_cast<TimeNs>(prediction.seconds * 1e9)), prediction.why),
        columns, "  ");
  }
  return text + wrapped(fmt::format("(Predicted: simulated on the platform fitted to this run; "
                                    "without a change that is {:.1f} % off what was recorded.)",
                                    std::abs(predictions.fit_error) * 100),
                        columns, "  ");
}

}  // namespace

std::string verdict_text(const analyze::RunAnalysis& analysis, const Predictions& predictions,
                         const std::string& clock, int columns) {
  if (analysis.steps.empty()) return "";
  const std::string how = clock == "simulated"  ? "SIMULATED CLOCK"
                          : clock == "emulated" ? "measured by the EMULATED CLOCK"
                                                : "measured";
  std::string text =
      wrapped(fmt::format("Why a step takes {} ({}, {} step{})", format_duration(analysis.dur), how,
                          analysis.steps.size(), analysis.steps.size() == 1 ? "" : "s"),
              columns, "  ");
  if (analysis.has_spans()) text += bars(analysis, columns);
  for (const analyze::Finding& finding : analyze::findings(analysis)) {
    text += wrapped(finding.text, columns, "  ");
  }
  if (analysis.has_spans()) text += prediction_lines(predictions, columns);
  return text;
}

}  // namespace sluice::cli
