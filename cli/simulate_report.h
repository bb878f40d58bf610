#pragma once
// What `sluice simulate` prints.
//
// Thread contract: free functions.

#include <string>

#include "base/units.h"
#include "core/simulate/simulation.h"

namespace sluice::cli {

std::string simulate_report_text(const plan::RunPlan& plan, const simulate::SimulatedStep& step,
                                 TimeNs dur_ns);
// What bounds the longest phase, by how much, and what would come next.
std::string simulate_verdict(const plan::RunPlan& plan, const simulate::SimulatedStep& step);
std::string simulate_report_json(const plan::RunPlan& plan, const simulate::SimulatedStep& step);

}  // namespace sluice::cli
