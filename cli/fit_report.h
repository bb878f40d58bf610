#pragma once
// What `sluice tune RUN.db` prints of how a platform was fitted to a run.
//
// Thread contract: free functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/tune/fitted_run.h"

namespace sluice::cli {

std::string fit_report_text(const tune::FittedRun& fitted);
nlohmann::ordered_json fit_report_json(const tune::FittedRun& fitted);

}  // namespace sluice::cli
