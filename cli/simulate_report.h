#pragma once
// What `sluice simulate` prints.
//
// Thread contract: free functions.

#include <optional>
#include <string>

#include "base/units.h"
#include "core/simulate/simulation.h"

namespace sluice::cli {

// `other_order`: core/simulate/batch_order.h; none: it makes no difference.
std::string simulate_report_text(const plan::RunPlan& plan, const simulate::SimulatedStep& step,
                                 const std::optional<simulate::SimulatedStep>& other_order,
                                 TimeNs dur_ns);
// What bounds the longest phase, by how much, and what would come next.
std::string simulate_verdict(const plan::RunPlan& plan, const simulate::SimulatedStep& step);
std::string simulate_report_json(const plan::RunPlan& plan, const simulate::SimulatedStep& step,
                                 const std::optional<simulate::SimulatedStep>& other_order);

}  // namespace sluice::cli
