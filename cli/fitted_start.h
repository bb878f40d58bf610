#pragma once
// A recorded run from which a search begins.
//
// Thread contract: free functions.

#include "cli/exit_code.h"
#include "core/tune/fitted_run.h"

namespace sluice::cli {

// The run, with the platform fitted to it. Errors name the database.
inline Result<tune::FittedRun> fitted_start(const tune::RecordedRunFiles& files) {
  ASSIGN_OR_RETURN(tune::RecordedRun run, of_database(tune::open_recorded_run(files)));
  Result<tune::FittedRun> fitted = tune::fitted_to(std::move(run));
  if (!fitted.ok()) return fitted.error().with_context(files.database);
  return fitted;
}

}  // namespace sluice::cli
