#include "gui/data/verdict.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

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
  const std::vector<int> percents = whole_percents(shares);
  for (std::size_t c = 0; c < causes.size(); ++c) causes[c].percent = percents[c];
  return causes;
}

}  // namespace

std::vector<int> whole_percents(const std::vector<double>& shares) {
  std::vector<int> whole;
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (const double share : shares) whole.push_back(static_cast<int>(share * 100));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  int left =
      static_cast<int>(std::lround(sum * 100)) - std::accumulate(whole.begin(), whole.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
    return shares[i] * 100 - static_cast<double>(whole[i]);
  });
  for (const std::size_t i : order) {
    if (left-- <= 0) break;
    whole[i] += 1;
  }
  return whole;
}

Result<Verdict> read_verdict(rundb::Reader& reader, const RunFacts& facts) {
  Verdict verdict;
  ASSIGN_OR_RETURN(verdict.analysis, analyze::analyze_run(reader, facts.info));
  verdict.findings = analyze::findings(verdict.analysis);
  verdict.suggestions = analyze::suggestions(verdict.analysis, facts.info);
  if (verdict.analysis.steps.empty()) {
    verdict.why_empty = "No step has ended.";
  } else if (!verdict.analysis.has_spans()) {
    verdict.why_empty =
        "The run recorded its steps but no operations; record=transfers or record=all records "
        "them.";
  } else {
    verdict.causes = causes_of(verdict.analysis);
  }
  return verdict;
}

}  // namespace sluice::gui
