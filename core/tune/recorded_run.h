#pragma once
// A run as its database has it: what it was asked to do, on which machine, and its steady steps.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "core/model/model_shape.h"
#include "core/platform/platform.h"
#include "core/settings/run_config.h"
#include "core/tune/recorded_steps.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::tune {

// What a program was recorded to take in a step, by layer.
struct ProgramCosts {
  std::vector<TimeNs> forward_ns;
  std::vector<TimeNs> backward_ns;
};

struct RecordedModel {
  RecordedModel() = default;
  RecordedModel(model::ModelShape of_file) : shape(std::move(of_file)) {}

  model::ModelShape shape;
  model::FlatLayout tensors;  // of a program of its own; no layers: it has a model file
  ProgramCosts costs;         // the same; empty: not known yet

  bool is_of_program() const { return !tensors.layers.empty(); }
  std::int64_t parameter_count() const;
  // Errors: those of plan::plan_run(), and of a program settings that do not go with it.
  Result<plan::RunPlan> plan(const settings::RunConfig& config,
                             const platform::Platform& platform) const;
};

struct RecordedRunFiles {
  std::string database;
  std::string model;     // empty: the text that the database holds
  std::string platform;  // the same
};

struct RecordedRun {
  std::string database;  // its path
  std::string name;
  std::string mode;                   // one line, as printed when it ran
  std::vector<std::string> settings;  // "key=value", those of the steps below
  settings::RunConfig config;         // the same
  RecordedModel model;
  platform::Platform platform;  // all of the file's devices
  bool is_simulated = false;
  double time_scale = 1;  // times below are recorded ones divided by it
  RecordedSteps steps;
  std::int64_t step_count = 0;       // in the database
  std::vector<std::string> caveats;  // a line each
};

// Whether `path` is to be read as a run database: it is one of SQLite's, or named like one.
bool is_database_path(const std::string& path);

// The steps since the run began, was resumed or changed a knob are steady, but for the first two:
// the first takes memory, and with pipeline=nbuffer only the third meets all that the one before
// leaves it. The one step that a simulated run recorded is steady. At most the last 50 are taken.
//
// Errors say what to do. ErrorCode::config: fewer than two steady steps, no operations recorded, no
// model or platform in the database and none named. rundb::Reader's: not_found, corrupt,
// unsupported.
Result<RecordedRun> open_recorded_run(const RecordedRunFiles& files);

// The settings of the run with `overrides` over them. A message about one of these begins with
// `option`.
Result<settings::RunConfig> recorded_config(const RecordedRun& run,
                                            const std::vector<std::string>& overrides,
                                            const std::string& option = "--set");

}  // namespace sluice::tune
