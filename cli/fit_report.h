#pragma once
// What `sluice tune RUN.db` prints of how a platform was fitted to a run.
//
// Thread contract: free functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/recorded_run.h"
#include "core/tune/platform_fit.h"

namespace sluice::cli {

std::string fit_report_text(const RecordedRun& run, const tune::PlatformFit& fit);
nlohmann::ordered_json fit_report_json(const RecordedRun& run, const tune::PlatformFit& fit);

}  // namespace sluice::cli
