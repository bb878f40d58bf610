#pragma once
// Where each kind of tensor of a run lies, in words: for the record, so that whoever opens a run
// sees which tier holds what.
//
// Thread contract: a free function.

#include <string>

namespace sluice::plan {

struct RunPlan;

// "parameters: drives, 404 MB, 13.5 MB of them in host memory at a time; gradients: ...".
// Optimizer state is one version of it; the drives have room for two.
std::string placement_text(const RunPlan& plan);

}  // namespace sluice::plan
