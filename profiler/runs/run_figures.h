#pragma once
// A run as a row of a table of many: what tells it from others, how far it came, what it reached,
// and what a step takes and moves. Read from the small tables; of operations only those of a few
// steps are read (step_bytes.h).
//
// Thread contract: plain data and a free function that opens the database.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/stops.h"
#include "base/units.h"
#include "profiler/runs/step_bytes.h"
#include "storage/rundb/rows.h"

namespace sluice::runs {

enum class RunState : std::uint8_t {
  live,
  finished,
  ended_early,  // before its last step, in an orderly way
  killed,       // the file of its writer lies there and nobody holds it
  simulated,
  unknown,     // its steps could not be read in time
  unreadable,  // RunFigures::error says why
};
const char* state_word(RunState state);  // "ended early"

inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

// The steps since the last change of a knob, without those in which the run settles
// (analyze::kSettlingSteps) and without skipped ones.
struct SteadyTime {
  std::size_t steps = 0;
  double median_s = kNoFigure;
  double noise_s = kNoFigure;  // three standard errors of the median; none of fewer than three
};

struct RunFigures {
  std::string path;   // of the database, or the folder of a run of several ranks
  std::string error;  // why it cannot be read; what was read before it stands all the same
  RunState state = RunState::unreadable;
  std::string name;
  std::string started;  // "2026-11-25 12:39", UTC
  std::string mode;     // table mode
  std::int64_t step_count = 0;
  double loss = kNoFigure;             // of the last step that has one
  double validation_loss = kNoFigure;  // of the last validation
  SteadyTime steady;
  std::optional<StepBytes> bytes;
  std::size_t device_count = 0;
  std::int64_t rank_count = 1;        // figures of a folder of several are rank 0's
  std::vector<std::string> marks;     // "70 % of operations LATE", "lost records: 12"
  std::vector<std::string> left_out;  // figures that are not there, each with the reason
  // By key: as the run began, and behind an arrow what a change of the knob made of it.
  std::map<std::string, std::string> settings;
};

struct ReadOptions {
  Stops stops = {};                       // from then on figures of this run are left out
  std::int64_t operations_max = 400'000;  // read for the bytes of a step
  std::int64_t counted_max = 2'000'000;   // operations whose rows are counted, to see if one lacks
};

// Stops after that time: a budget for one run.
Stops stops_after(TimeNs budget_ns);

// Never fails: a database that cannot be read is a row with its error.
RunFigures read_figures(const std::string& path, const ReadOptions& options = {});

// Where several ranks recorded rank 0's, else the path.
std::string database_of_run(const std::string& path);

}  // namespace sluice::runs
