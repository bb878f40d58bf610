#pragma once
// The text of `sluice simulate`.
//
// Thread contract: free functions.

#include <string>

#include "base/units.h"
#include "core/simulate/drive_wear.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::cli {

std::string simulate_report_text(const plan::RunPlan& plan, const simulate::SimulatedStep& step,
                                 TimeNs dur_ns);
// The bound of the longest phase, its share, and the next one.
std::string simulate_verdict(const plan::RunPlan& plan, const simulate::SimulatedStep& step);
// The drive that wears out first, among those whose endurance is stated; empty without such.
std::string wear_text(const plan::RunPlan& plan, const simulate::SimulatedStep& step);

}  // namespace sluice::cli
