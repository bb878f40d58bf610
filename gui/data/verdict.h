#pragma once
// Why a step takes as long as it does: what profiler/analyze says of the run, ready to be drawn.
//
// Thread contract: plain data; read_verdict uses its reader.

#include <string>
#include <vector>

#include "base/status.h"
#include "gui/data/run_facts.h"
#include "profiler/analyze/advice.h"
#include "profiler/analyze/doubts.h"
#include "profiler/analyze/run_analysis.h"

namespace sluice::gui {

struct CauseShare {
  analyze::Cause cause = analyze::Cause::other;
  double share = 0;
  int percent = 0;  // whole; all together 100
  TimeNs dur_ns = 0;
};

struct Verdict {
  analyze::RunAnalysis analysis;
  std::vector<CauseShare> causes;  // the largest first; those with any share
  std::vector<analyze::Remark> findings;
  std::vector<analyze::Suggestion> suggestions;
  std::vector<analyze::Doubt> doubts;
  std::string why_empty;  // not empty: nothing is known, and why
};

Result<Verdict> read_verdict(rundb::Reader& reader, const RunFacts& facts);

}  // namespace sluice::gui
