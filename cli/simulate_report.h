#pragma once
// What `sluice simulate` prints.
//
// Thread contract: free functions.

#include <string>

#include "base/units.h"
#include "core/train/simulation.h"

namespace sluice::cli {

std::string simulate_report_text(const train::RunPlan& plan, const train::SimulatedStep& step,
                                 TimeNs dur_ns);
std::string simulate_report_json(const train::RunPlan& plan, const train::SimulatedStep& step);

}  // namespace sluice::cli
