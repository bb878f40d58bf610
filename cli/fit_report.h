#pragma once
// The text of `sluice tune RUN.db` on how a platform was fitted to a run.
//
// Thread contract: free function.

#include <string>

#include "core/tune/fitted_run.h"

namespace sluice::cli {

std::string fit_report_text(const tune::FittedRun& fitted);

}  // namespace sluice::cli
