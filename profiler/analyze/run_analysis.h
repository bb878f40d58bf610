#pragma once
// A whole run: what its steps' time was spent on, what was full, what was uneven, what changed.
//
// Thread contract: free functions. Memory: one step's spans at a time.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "profiler/analyze/critical_path.h"
#include "profiler/analyze/link_use.h"
#include "profiler/analyze/overlap.h"
#include "profiler/analyze/run_data.h"
#include "profiler/analyze/trend.h"

namespace sluice::analyze {

// A step that stands out, and what it spent the difference on.
struct OutlierStep {
  std::int64_t step = 0;
  TimeNs dur = 0;
  TimeNs typical_dur = 0;
  Cause cause = Cause::other;
  TimeNs more_ns = 0;  // of that cause than in the steps looked at
};

struct RunAnalysis {
  std::size_t step_count = 0;  // in the database
  // Steps looked at: of the last stretch of the run in which steps took about as long as they take
  // now, without the first two of the run or after a change of a knob, where there are others.
  std::vector<std::int64_t> steps;
  TimeNs dur = 0;                           // their median
  std::array<double, kCauseCount> share{};  // of all their time; sums to 1
  // By cause: the one of them that spent the largest share on it; none: none did.
  std::array<std::optional<std::int64_t>, kCauseCount> step_of_most{};
  std::vector<LinkLoad> links;             // means
  Overlap overlap;                         // sums
  std::vector<DeviceUse> devices;          // sums
  Trend trend;                             // of all steps' seconds
  std::vector<std::int64_t> change_steps;  // of trend.changes
  std::vector<OutlierStep> outliers;       // the worst first, at most kOutliersMax

  bool has_spans() const { return links.size() > 0 || overlap.compute_ns > 0; }
};

struct AnalysisOptions {
  std::size_t steps_max = 20;  // looked at
};
inline constexpr std::size_t kOutliersMax = 5;

// A run without steps has an analysis without any.
Result<RunAnalysis> analyze_run(rundb::Reader& reader, const RunInfo& info,
                                const AnalysisOptions& options = {});

}  // namespace sluice::analyze
