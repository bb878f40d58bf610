#pragma once
// What an analysis says in plain sentences, and the setting that would help. What it would
// gain is for whoever can simulate (core/tune/prediction.h).
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "profiler/analyze/run_analysis.h"

namespace sluice::analyze {

// Measured, all of it: "46 % of a step is writing state to drives (2.65 s); csd0.drive is full".
struct Remark {
  std::string text;
  bool is_warning = false;  // something stands out that should not
  // The same for whoever has the shares before their eyes: without them. Empty: then it says
  // nothing.
  std::string beside_shares = {};
  std::int64_t step = -1;  // that it is about; -1: of none in particular
};
// The most important first.
std::vector<Remark> remarks(const RunAnalysis& analysis);

// The worst findings (profiler/analyze/findings.h) as remarks, for surfaces that list those: what
// each costs and what to do, about its worst step.
inline constexpr std::size_t kFindingsShown = 3;
std::vector<Remark> worst_findings(const RunAnalysis& analysis);

// A setting that may shorten steps of this run: what their time is spent on says which.
struct Suggestion {
  Cause cause = Cause::other;
  std::string setting;  // "buffers=8"; of docs/settings.md
  std::string why;      // "reads wait for buffers while their link is idle"
};
// For causes of at least this share. Empty: no setting of the run is known to help.
inline constexpr double kSuggestFrom = 0.05;
// None for another program's run.
std::vector<Suggestion> suggestions(const RunAnalysis& analysis, const RunInfo& info);

}  // namespace sluice::analyze
