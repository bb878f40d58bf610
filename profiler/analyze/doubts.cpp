#include "profiler/analyze/doubts.h"

#include <fmt/format.h>

#include "base/units.h"
#include "profiler/analyze/answers.h"

namespace sluice::analyze {
namespace {

void doubt_losses(const RunAnalysis& analysis, std::vector<Doubt>& doubts) {
  if (analysis.answers.empty()) return;  // nobody has looked yet
  const Answer& losses = analysis.answers.front();
  if (losses.outcome == Outcome::nothing_found) return;
  doubts.push_back({kLostLabel,
                    losses.outcome == Outcome::answer ? "records LOST" : "losses NOT KNOWN",
                    losses_sentence(losses)});
}

void doubt_times(const RunAnalysis& analysis, std::vector<Doubt>& doubts) {
  if (!analysis.lateness.is_late()) return;
  doubts.push_back({"LATE", analysis.lateness.short_words(), analysis.lateness.words()});
}

void doubt_clocks(const RunAnalysis& analysis, std::vector<Doubt>& doubts) {
  if (!analysis.ranks || analysis.dur <= 0) return;
  const TimeNs bound_ns = analysis.ranks->bound_ns;
  const double share = static_cast<double>(bound_ns) / static_cast<double>(analysis.dur);
  if (share < kClockShare) return;
  doubts.push_back(
      {"CLOCKS", fmt::format("clocks known within {}", format_duration(bound_ns)),
       fmt::format("The ranks' clocks are known within {}, {:.0f} % of a step: which rank waits "
                   "for another is not better known than that.",
                   format_duration(bound_ns), share * 100)});
}

}  // namespace

std::vector<Doubt> doubts_of(const RunAnalysis& analysis) {
  std::vector<Doubt> doubts;
  doubt_losses(analysis, doubts);
  doubt_times(analysis, doubts);
  doubt_clocks(analysis, doubts);
  return doubts;
}

std::string doubt_marks(std::span<const Doubt> doubts) {
  std::string marks;
  for (const Doubt& doubt : doubts) marks += (marks.empty() ? "" : " \u00b7 ") + doubt.mark;
  return marks;
}

}  // namespace sluice::analyze
