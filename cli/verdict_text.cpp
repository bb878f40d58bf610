#include "cli/verdict_text.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "base/words.h"
#include "cli/paint.h"
#include "cli/terminal.h"
#include "profiler/analyze/advice.h"

namespace sluice::cli {
namespace {

constexpr int kBarMax = 28;

struct BarLine {
  std::string_view name;
  double share = 0;
  std::uint32_t colour = palette::kUnknown;
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
      const auto cause = static_cast<analyze::Cause>(c);
      lines.push_back({analyze::cause_label(cause), share, analyze::cause_colour(cause).dark});
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
  const int bar_max = std::clamp(columns - 39, 1, kBarMax);
  double most = 0;
  for (const BarLine& line : lines) most = std::max(most, line.share);
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const BarLine& line = lines[i];
    text += fmt::format(
        "  {:<17} {} {:>5.1f} %  {:>9}\n", line.name, bar(line.share / most, bar_max, line.colour),
        tenths[i] / 10.0,
        format_duration(static_cast<TimeNs>(line.share * static_cast<double>(analysis.dur))));
  }
  return text;
}

std::string predicted_words(const analyze::PredictedChange& change) {
  return fmt::format("{}, predicted {}", analyze::change_words(change, "->"),
                     analyze::gain_words(change, "->"));
}

std::string change_lines(std::string_view heading,
                         const std::vector<analyze::PredictedChange>& changes, int columns) {
  std::string text;
  for (const analyze::PredictedChange& change : changes) {
    text += wrapped(fmt::format("{}: {}{}.", text.empty() ? heading : "Or", predicted_words(change),
                                change.why.empty() ? "" : ": " + change.why),
                    columns, "  ");
  }
  return text;
}

// The others are in --json.
std::string findings_text(const std::vector<analyze::Finding>& findings, int columns) {
  if (findings.empty()) return "";
  std::string text = "Findings:\n";
  for (std::size_t i = 0; i < std::min(findings.size(), analyze::kFindingsShown); ++i) {
    text += "  " + wrapped(fmt::format("{}: {} {}", findings[i].kind, findings[i].words,
                                       findings[i].advice),
                           columns - 2, "    ");
  }
  if (findings.size() > analyze::kFindingsShown) {
    text += fmt::format("  and {} more (--json lists them)\n",
                        findings.size() - analyze::kFindingsShown);
  }
  return text;
}

}  // namespace

std::string verdict_text(const analyze::RunAnalysis& analysis,
                         const std::optional<analyze::PredictedChanges>& predicted,
                         const analyze::RunInfo& info, int columns) {
  if (analysis.steps.empty()) {
    return wrapped(analyze::sentence_of(analysis.why_unknown), columns, "  ");
  }
  const std::string clock = info.meta_value("clock");
  const std::string how =
      clock == "simulated"  ? "SIMULATED CLOCK"
      : clock == "emulated" ? fmt::format("measured by the EMULATED CLOCK x{:g}", info.time_scale())
      : clock.empty()       ? "by a clock that is not known"
                            : "measured";
  std::string text =
      wrapped(fmt::format("{} {} ({}, {} step{})", words::kWhy, format_duration(analysis.dur), how,
                          analysis.steps.size(), analysis.steps.size() == 1 ? "" : "s"),
              columns, "  ");
  if (analysis.has_spans()) text += bars(analysis, columns);
  for (const analyze::Remark& finding : analyze::remarks(analysis)) {
    const std::string lines = wrapped(finding.text, columns, "  ");
    text += finding.is_warning ? amber(lines) : lines;
  }
  text += findings_text(analysis.findings, columns);
  if (predicted) text += turn_next_text(*predicted, columns);
  return text;
}

std::string doubts_text(std::span<const analyze::Doubt> doubts, int columns) {
  std::string text;
  for (const analyze::Doubt& doubt : doubts)
    text += amber(wrapped(doubt.label + ": " + doubt.sentence, columns, "  "));
  return text;
}

std::string turn_next_text(const analyze::PredictedChanges& predicted, int columns) {
  if (!predicted.unavailable.empty()) {
    return wrapped("Nothing is predicted: " + predicted.unavailable, columns, "  ");
  }
  const analyze::TurnNext next = analyze::turn_next(predicted);
  std::string text = change_lines(words::kTurnNext, next.now, columns);
  text += change_lines(words::kAnotherRun, next.another_run, columns);
  if (text.empty()) {
    text = wrapped(fmt::format("{}: {}", words::kTurnNext, analyze::none_words(predicted)), columns,
                   "  ");
  }
  if (next.together) {
    text += wrapped(
        fmt::format("{}: {} (sluice tune).", words::kTogether, predicted_words(*next.together)),
        columns, "  ");
  }
  text += wrapped("(" + analyze::fit_words(predicted) + ")", columns, "  ");
  return predicted.caution.empty() ? text : text + amber(wrapped(predicted.caution, columns, "  "));
}

}  // namespace sluice::cli
