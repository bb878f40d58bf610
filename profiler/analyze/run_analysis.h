#pragma once
// A whole run: what its steps' time was spent on, what was full, what was uneven, what changed.
//
// Thread contract: free functions. Memory: one step's spans at a time.

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "profiler/analyze/activation_waits.h"
#include "profiler/analyze/answer.h"
#include "profiler/analyze/critical_path.h"
#include "profiler/analyze/findings.h"
#include "profiler/analyze/lateness.h"
#include "profiler/analyze/link_use.h"
#include "profiler/analyze/overlap.h"
#include "profiler/analyze/rank_analysis.h"
#include "profiler/analyze/run_data.h"
#include "profiler/analyze/slowest_step.h"
#include "profiler/analyze/trend.h"
#include "storage/rundb/completeness.h"

namespace sluice::analyze {

// A step that stands out, and what it spent the difference on where operations say so.
struct OutlierStep {
  std::int64_t step = 0;
  TimeNs dur = 0;
  TimeNs typical_dur = 0;
  Cause cause = Cause::other;
  TimeNs more_ns = 0;  // of that cause than in the steps looked at
};

// The part of the record that the analysis could use, in the steps looked at.
struct Evidence {
  rundb::Completeness rows;  // of the whole file
  std::size_t operations = 0;
  std::size_t flows = 0;
  std::size_t unlinked_transfers = 0;      // moved bytes over no link that has a row
  std::set<std::int64_t> unknown_devices;  // that operations name and no row does
  // Each device has a share of the state. Another program's drives may be there for anything.
  bool devices_have_shares = true;
  std::set<std::string> names_without_stage;  // the track alone says what these are
};

// What the paths of the steps looked at went over, and what there is to point at.
struct PathFindings {
  PathSurvey survey;
  std::vector<Finding> findings;  // the costliest first
};

struct RunAnalysis : PathFindings {
  std::size_t step_count = 0;             // in the database
  std::size_t skipped_count = 0;          // of them, for overflow
  std::size_t skipped_at_end = 0;         // of them, one behind the other
  std::optional<std::int64_t> lost_loss;  // from this step on none is finite; others before were
  // Steps looked at: of the last stretch of the run in which steps took about as long as they take
  // now, without the first two of the run or after a change of a knob, where there are others.
  std::vector<std::int64_t> steps;
  TimeNs dur = 0;                           // their median
  std::array<double, kCauseCount> share{};  // of all their time; sums to 1
  // By cause: the one of them that spent the largest share on it; none: none did.
  std::array<std::optional<std::int64_t>, kCauseCount> step_of_most{};
  std::vector<LinkLoad> links;             // means
  WaitUse waits;                           // sums
  Overlap overlap;                         // sums
  std::vector<DeviceUse> devices;          // sums
  Trend trend;                             // of all steps' seconds
  std::vector<std::int64_t> change_steps;  // of trend.changes
  std::vector<OutlierStep> outliers;       // the worst first, at most kOutliersMax
  std::size_t outlier_count = 0;           // of steps with the settings now in force
  // The slowest of the whole run, each step beside those with its settings; none: all take the
  // same, or there are too few.
  std::optional<SlowestStep> slowest;

  // Steps in which it looked for what stands out: those since the last change.
  std::size_t stretch_step_count = 0;
  Evidence evidence;
  Lateness lateness;  // of the whole run
  // The same steps of each rank, where the record has all ranks; else none.
  std::optional<RankAnalysis> ranks;
  // Why operations say nothing of the steps (no sentence of its own: sentence_of()); empty: they
  // do. Then share, links, overlap, devices and causes of outliers are there.
  std::string why_unknown;
  // One for every analysis of the run, prediction apart; the first is of lost records.
  std::vector<Answer> answers;

  bool has_spans() const { return why_unknown.empty(); }
};

struct AnalysisOptions {
  std::size_t steps_max = 20;  // looked at
};
inline constexpr std::size_t kOutliersMax = 5;

// A run without steps has an analysis without any.
// Looks for bottlenecks again, with ranks that were found elsewhere. `steps`: all of the run.
void find_again(RunAnalysis& analysis, const RunInfo& info,
                const std::vector<rundb::StepRow>& steps);

Result<RunAnalysis> analyze_run(rundb::Reader& reader, const RunInfo& info,
                                const AnalysisOptions& options = {});

}  // namespace sluice::analyze
