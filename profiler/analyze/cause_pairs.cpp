#include "profiler/analyze/cause_pairs.h"

#include <algorithm>
#include <functional>

#include "profiler/analyze/run_analysis.h"
#include "storage/rundb/reader.h"

namespace sluice::analyze {
namespace {

Result<RunAnalysis> analysis_of(const std::string& database) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::Reader> reader, rundb::Reader::open(database));
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader->snapshot());
  ASSIGN_OR_RETURN(const RunInfo info, load_run_info(*reader));
  return analyze_run(*reader, info);
}

}  // namespace

std::vector<CausePair> cause_pairs(const RunAnalysis& a, const RunAnalysis& b,
                                   const Comparison& comparison) {
  std::vector<CausePair> causes;
  const ComparedFigure* step = comparison.figure("step_time");
  if (!a.has_spans() || !b.has_spans() || step == nullptr) return causes;
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    const CausePair pair{.cause = static_cast<Cause>(c),
                         .a_ns = a.share[c] * step->a * 1e9,
                         .b_ns = b.share[c] * step->b * 1e9};
    if (pair.a_ns > 0 || pair.b_ns > 0) causes.push_back(pair);
  }
  std::ranges::stable_sort(causes, std::greater<>(),
                           [](const CausePair& pair) { return std::max(pair.a_ns, pair.b_ns); });
  return causes;
}

Result<std::vector<CausePair>> cause_pairs(const std::string& database_a,
                                           const std::string& database_b,
                                           const Comparison& comparison) {
  ASSIGN_OR_RETURN(const RunAnalysis a, analysis_of(database_a));
  ASSIGN_OR_RETURN(const RunAnalysis b, analysis_of(database_b));
  return cause_pairs(a, b, comparison);
}

}  // namespace sluice::analyze
