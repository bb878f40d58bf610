#pragma once
// The arguments of `sluice train`, and the settings and changes of the run that follow from it.
//
// Thread contract: plain data and free functions.

#include <string>
#include <vector>

#include "core/session/knob_schedule.h"
#include "core/settings/run_config.h"

namespace sluice::cli {

struct TrainArguments {
  std::string run_path;  // empty: --like
  std::string like;      // a recorded run's database
  std::string model;     // in place of the run's; empty: its own
  std::vector<std::string> overrides;
  std::string sharding;
  std::vector<std::string> changes;
  std::string database;
  std::int64_t steps = 0;
  int metrics_port = -1;  // below 0: nobody asked
  bool resume = false;
  bool json = false;
  bool settings = false;
};

// The run's settings. A run like another writes beside it, where nothing else is said: that folder
// is then one of the overrides.
Result<settings::RunConfig> config_of(TrainArguments& arguments);

// "10:density=0.1" each, by their steps. What they say is checked before the run begins.
Result<std::vector<session::PlannedChange>> changes_of(const TrainArguments& arguments,
                                                       settings::RunConfig config);

}  // namespace sluice::cli
