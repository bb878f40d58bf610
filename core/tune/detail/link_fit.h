#pragma once
// By what the rates of links must be multiplied for transfers to take, in simulation, what was
// recorded.
//
// Thread contract: free function.

#include "core/tune/detail/fit_simulation.h"

namespace sluice::tune::detail {

enum class LinksFitted : std::uint8_t {
  of_devices,  // drives and internal links
  shared,      // those that devices share
  all,
};

// `charged` is a step of `plan`; a handful more are simulated, for each link and direction of a
// device one, with its rate lowered by the logarithm `lower`. Links that make no difference have no
// factor.
Result<std::vector<RateFactor>> link_factors(const plan::RunPlan& plan, const ChargedStep& charged,
                                             const RecordedSteps& recorded, LinksFitted which,
                                             double lower);

// How far simulated transfers are from recorded ones: the mean square, by time, of the logarithms
// of their ratios.
double transfer_mismatch(const RecordedSteps& simulated, const RecordedSteps& recorded);

}  // namespace sluice::tune::detail
