#pragma once
// A run as its database has it: what it was asked to do, on which machine, and its steady steps.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "core/tune/recorded_steps.h"

namespace sluice::cli {

struct RecordedRunFiles {
  std::string database;
  std::string model;     // empty: the text that the database holds
  std::string platform;  // the same
};

struct RecordedRun {
  std::string name;
  std::string mode;                   // one line, as printed when it ran
  std::vector<std::string> settings;  // "key=value", those of the steps below
  settings::RunConfig config;         // the same
  model::ModelShape shape;
  platform::Platform platform;  // all of the file's devices
  bool is_simulated = false;
  double time_scale = 1;  // times below are recorded ones divided by it
  tune::RecordedSteps steps;
  std::int64_t step_count = 0;       // in the database
  std::vector<std::string> caveats;  // a line each
};

// Whether `path` is to be read as a run database: it is one of SQLite's, or named like one.
bool is_database_path(const std::string& path);

// Steady are the steps since the run began, went on or changed a knob, without the first two of
// them: the first takes memory, and with pipeline=nbuffer only the third meets all that the one
// before leaves it. Of a simulated run the one step that it recorded is steady. Of many the last
// are taken.
//
// Errors are ErrorCode::config, not_found or unsupported and say what to do: no run database, fewer
// than two steady steps, no operations recorded, no model or platform in it and none named.
Result<RecordedRun> open_recorded_run(const RecordedRunFiles& files);

// The settings of the run with others over them; messages begin with `option` where one is wrong.
Result<settings::RunConfig> recorded_config(const RecordedRun& run, const std::string& database,
                                            const std::vector<std::string>& overrides,
                                            const std::string& option = "--set");

}  // namespace sluice::cli
