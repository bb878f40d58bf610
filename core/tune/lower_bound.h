#pragma once
// How short a step can be at best, whatever the layers do with their activations, with all other
// settings as they are. No schedule is simulated for it: three sums, of which the largest counts.
//
//   critical path    the layers' forward and backward, one after another on the engine that
//                    computes them
//   each link        its bytes over its rate: those of a step that moves no activation, and those
//                    activations that must leave
//   each engine      its kernels, and the checksums of what leaves
//
// How much must leave or be computed again follows from the memory: what all layers keep less what
// there is room for. Layers are cut as finely as one likes here, the cheapest are computed again
// first, and the share that leaves is the one that makes the largest of the sums smallest. That is
// Fuyou's convex problem, as a bound of every plan in place of a plan.
//
// Thread contract: plain data and free functions.

#include <string>

#include "core/platform/platform.h"
#include "core/tune/layer_choices.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::tune {

struct LowerBound {
  double seconds = 0;
  std::string what;  // that bounds: "compute kernels" (the critical path), "drive link", "host
                     // kernels", ...
};

// The loads of links and engines in a step of `kept`, which keeps all activations: simulated with
// pipeline=serial, which moves what any pipeline does and ends all of it in its own step. An
// activation that leaves crosses an accelerator's link, the host's and a drive's, out and back,
// with a checksum at either end. Errors: those of the simulation.
Result<std::vector<StepLoad>> step_loads(plan::RunPlan kept);

// Seconds that an activation byte takes one way (write: to the drives) on the busiest of what it
// crosses, the checksum included.
double moved_byte_seconds(const plan::RunPlan& run, platform::Direction direction);

// `surplus_bytes`: of memory, by which a plan that keeps everything exceeds its cap; 0 or less:
// everything may be kept.
LowerBound lower_bound(const LayerProblem& problem, std::int64_t surplus_bytes);

}  // namespace sluice::tune
