#pragma once
// One training step in simulated time, of a live run: the schedule of training_step.h and
// core/offload as it is, under the simulated clock, without payload. Nothing here knows how a step
// goes.
//
// Thread contract: one call on one thread; deterministic.

#include <functional>
#include <span>
#include <string>

#include "base/status.h"
#include "core/simulate/simulated_step.h"

namespace sluice::plan {
struct RunPlan;
}
namespace sluice::record {
class Recorder;
}
namespace sluice::runtime {
class OperationSink;
}
namespace sluice::settings {
struct RunConfig;
}

namespace sluice::simulate {

// The settings of a simulation: `overrides` ("key=value") over those of the published measurements
// (Smart-Infinity, HPCA 2024, section VII-A), which are those of a run that fills a server: batch
// 4, the model's whole sequence, activations recomputed, 6.4 GB of buffers for gradients on their
// way. Subgroups have 85 million elements: so few that three buffer sets fit the 4 GiB of a
// SmartSSD, and so many that 0.34 billion parameters are one round on six drives as on ten, which
// took the same (figure 16a; the released configuration says 40 million). With method=csd and
// parameter_tier=storage, where a buffer set has a 16-bit copy too, they have 75 million.
Result<settings::RunConfig> simulation_config(const std::string& model_path,
                                              const std::string& platform_path,
                                              std::span<const std::string> overrides);

// Where a simulated step is recorded; of several, the first.
struct SimulationRecording {
  record::Recorder* recorder = nullptr;
  // Before the first operation; the sink says which track an operation is on.
  std::function<Status()> begin;
  // Virtual time runs ahead of whoever writes the records down: called when they must be.
  std::function<Status()> write_down;
};

// Errors: a device whose memory or drive is too small for the run (ErrorCode::memory, config), and
// those of `recording`. `recording` and `listener` may be null; `listener` is told of each
// operation that ends in a step of SimulatedStep::steps or after it.
Result<SimulatedStep> simulate_step(const plan::RunPlan& plan,
                                    const SimulationRecording* recording = nullptr,
                                    runtime::OperationSink* listener = nullptr);

}  // namespace sluice::simulate
