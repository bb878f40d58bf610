#pragma once
// Beginning a run from the window: the runs that come with Sluice, and one of them started as a
// process of its own. It outlives the window: closing it must never hurt a run, and `sluice stop`,
// Ctrl+C at its process or the window's own command end it.
//
// Thread contract: free functions that read and write the disk, shortly; not the frame thread.

#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::gui {

struct LikeRun;

struct SampleRun {
  std::string name;     // "tiny"
  std::string path;     // of its TOML file, absolute
  std::string comment;  // the first sentence of the comment at its top; may be empty
};
// The runs of sample_models/runs, in the folder where the program was started or else where it was
// built, by name.
std::vector<SampleRun> sample_runs();
std::vector<SampleRun> sample_runs_in(const std::string& folder);

struct StartedRun {
  std::string database;
  std::string log;  // what the process prints
  long process = 0;
};
// `sluice train` of it, with its output in `folder`/NAME, or NAME-2, NAME-3 where that is there.
Result<StartedRun> start_run(const std::string& program, const SampleRun& run,
                             const std::string& folder);

// Where a run like a recorded one would write without writing over anything: beside that,
// out/tiny-2 beside out/tiny. A folder; of a simulated one the database.
std::string free_output(const LikeRun& run);
Result<StartedRun> start_like(const std::string& program, const LikeRun& run);

// The last line of a log that is not empty, at most 600 characters of it; "" without one.
std::string last_log_line(const std::string& path);

}  // namespace sluice::gui
