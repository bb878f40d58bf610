#pragma once
// The settings of a recorded run, for a new run like it (`--like`), and its knobs as they were
// last.
//
// Thread contract: free functions that read a run database.

#include <string>
#include <vector>

#include "base/status.h"
#include "core/settings/run_config.h"

namespace sluice::tune {

// "key=value" of every setting that the record names, knobs as they were last; without those that
// say where a run writes (output, state_dir, db). Files that the run named relative to the folder
// in which it was started are found from that folder, where the database's own path tells which.
// Errors: rundb::Reader's; ErrorCode::config where the record names no settings.
Result<std::vector<std::string>> settings_like(const std::string& database);

// A free folder beside that of the run, NAME-2 beside NAME; "" where a run like it has no folder to
// be beside, since it was simulated.
Result<std::string> output_beside(const std::string& database);

// Whether one of "key=value" is the folder that a run writes into.
bool says_output(const std::vector<std::string>& overrides);

// Those with `overrides` over them, checked together.
Result<settings::RunConfig> config_like(const std::string& database,
                                        const std::vector<std::string>& overrides);

}  // namespace sluice::tune
