#include "gui/data/verdict.h"

#include <algorithm>
#include <functional>

#include "profiler/analyze/whole_percents.h"

namespace sluice::gui {
namespace {

std::vector<CauseShare> causes_of(const analyze::RunAnalysis& analysis) {
  std::vector<CauseShare> causes;
  const auto percents = analyze::whole_percents(analysis.share);
  for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
    const double share = analysis.share[c];
    if (share <= 0) continue;
    causes.push_back({.cause = static_cast<analyze::Cause>(c),
                      .share = share,
                      .percent = percents[c],
                      .dur_ns = static_cast<TimeNs>(share * static_cast<double>(analysis.dur))});
  }
  std::ranges::stable_sort(causes, std::greater<>(), &CauseShare::share);
  return causes;
}

}  // namespace

Result<Verdict> read_verdict(rundb::Reader& reader, const RunFacts& facts) {
  Verdict verdict;
  ASSIGN_OR_RETURN(verdict.analysis, analyze::analyze_run(reader, facts.info));
  verdict.findings = analyze::remarks(verdict.analysis);
  std::ranges::move(analyze::worst_findings(verdict.analysis),
                    std::back_inserter(verdict.findings));
  verdict.suggestions = analyze::suggestions(verdict.analysis, facts.info);
  verdict.doubts = analyze::doubts_of(verdict.analysis);
  verdict.why_empty = analyze::sentence_of(verdict.analysis.why_unknown);
  if (verdict.why_empty.empty()) verdict.causes = causes_of(verdict.analysis);
  return verdict;
}

}  // namespace sluice::gui
