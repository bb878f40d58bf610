#include "gui/data/verdict.h"

#include <algorithm>
#include <functional>

namespace sluice::gui {
namespace {

std::vector<CauseShare> causes_of(const analyze::RunAnalysis& analysis) {
  std::vector<CauseShare> causes;
  for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
    const double share = analysis.share[c];
    if (share <= 0) continue;
    causes.push_back({.cause = static_cast<analyze::Cause>(c),
                      .share = share,
                      .dur_ns = static_cast<TimeNs>(share * static_cast<double>(analysis.dur))});
  }
  std::ranges::stable_sort(causes, std::greater<>(), &CauseShare::share);
  std::vector<double> shares;
  for (const CauseShare& cause : causes) shares.push_back(cause.share);
  const std::vector<int> percents = analyze::rounded_shares(shares, 100);
  for (std::size_t c = 0; c < causes.size(); ++c) causes[c].percent = percents[c];
  return causes;
}

}  // namespace

Result<Verdict> read_verdict(rundb::Reader& reader, const RunFacts& facts) {
  Verdict verdict;
  ASSIGN_OR_RETURN(verdict.analysis, analyze::analyze_run(reader, facts.info));
  verdict.findings = analyze::findings(verdict.analysis);
  verdict.suggestions = analyze::suggestions(verdict.analysis, facts.info);
  verdict.why_empty = analyze::sentence_of(verdict.analysis.why_unknown);
  if (verdict.why_empty.empty()) verdict.causes = causes_of(verdict.analysis);
  return verdict;
}

}  // namespace sluice::gui
