#pragma once
// A step's time by cause, of two runs.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/cause.h"
#include "profiler/analyze/comparison.h"

namespace sluice::analyze {

struct RunAnalysis;

// The median step that the comparison has, divided as the critical path of the steps that
// analyze_run() looks at is: all causes of a run together are that step, so that one page has one
// average.
struct CausePair {
  Cause cause = Cause::other;
  double a_ns = 0;
  double b_ns = 0;
};

// The largest first, without causes that neither run has; none where a run recorded no operations.
std::vector<CausePair> cause_pairs(const RunAnalysis& a, const RunAnalysis& b,
                                   const Comparison& comparison);
Result<std::vector<CausePair>> cause_pairs(const std::string& database_a,
                                           const std::string& database_b,
                                           const Comparison& comparison);

}  // namespace sluice::analyze
