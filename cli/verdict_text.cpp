#include "cli/verdict_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace sluice::cli {
namespace {

constexpr int kColumnsMin = 40;
constexpr int kBarMax = 28;

// Words of `text` on lines of at most `columns`, the later ones indented.
std::string wrapped(const std::string& text, int columns, const std::string& indent) {
  std::string lines;
  std::string line;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (!line.empty() && line.size() + 1 + word.size() > static_cast<std::size_t>(columns)) {
      lines += line + "\n";
      line = indent;
    } else if (!line.empty()) {
      line += ' ';
    }
    line += word;
    at = space + 1;
  }
  return lines + line + "\n";
}

std::string bars(const analyze::RunAnalysis& analysis, int columns) {
  std::vector<analyze::Cause> causes;
  for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
    if (analysis.share[c] >= 0.005) causes.push_back(static_cast<analyze::Cause>(c));
  }
  std::ranges::stable_sort(causes, std::greater<>(), [&](analyze::Cause cause) {
    return analysis.share[analyze::index_of(cause)];
  });
  const int bar_max = std::clamp(columns - 36, 4, kBarMax);
  const double most = causes.empty() ? 1 : analysis.share[analyze::index_of(causes.front())];
  std::string text;
  for (const analyze::Cause cause : causes) {
    const double share = analysis.share[analyze::index_of(cause)];
    const auto length = static_cast<std::size_t>(std::lround(share / most * bar_max));
    text += fmt::format(
        "  {:<14} {:<{}} {:>5.1f} %  {:>9}\n", analyze::cause_name(cause), std::string(length, '#'),
        bar_max, share * 100,
        format_duration(static_cast<TimeNs>(share * static_cast<double>(analysis.dur))));
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
    const std::string& setting = prediction.suggestion.setting;
    const std::size_t equals = setting.find('=');
    text +=
        wrapped(fmt::format("{}: {} {} -> {}, predicted {:+.0f} % ({}): {}.",
                            text.empty() ? "Turn next" : "Or", setting.substr(0, equals),
                            prediction.from, setting.substr(equals + 1), prediction.change * 100,
                            format_duration(static_cast<TimeNs>(prediction.seconds * 1e9)),
                            prediction.suggestion.why),
                columns, "  ");
  }
  return text + wrapped(fmt::format("(Predicted: simulated on the platform fitted to this run; "
                                    "without a change that is {:.1f} % off what was recorded.)",
                                    std::abs(predictions.fit_error) * 100),
                        columns, "  ");
}

}  // namespace

int terminal_columns() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string verdict_text(const analyze::RunAnalysis& analysis, const Predictions& predictions,
                         const std::string& clock, int columns) {
  if (analysis.steps.empty()) return "";
  columns = std::max(columns, kColumnsMin);
  const std::string how = clock == "simulated"  ? "SIMULATED CLOCK"
                          : clock == "emulated" ? "measured by the EMULATED CLOCK"
                                                : "measured";
  std::string text =
      fmt::format("Why a step takes {} ({}, {} step{})\n", format_duration(analysis.dur), how,
                  analysis.steps.size(), analysis.steps.size() == 1 ? "" : "s");
  if (analysis.has_spans()) text += bars(analysis, columns);
  for (const analyze::Finding& finding : analyze::findings(analysis)) {
    text += wrapped(finding.text, columns, "  ");
  }
  if (analysis.has_spans()) text += prediction_lines(predictions, columns);
  return text;
}

}  // namespace sluice::cli
