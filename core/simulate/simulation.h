#pragma once
// One training step in simulated time, of a run that goes on: the schedule of training_step.h and
// core/offload as it is, under the simulated clock, without payload. Nothing here knows how a step
// goes.
//
// Thread contract: one call on one thread; deterministic.

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/plan/run_plan.h"
#include "core/runtime/recording.h"

namespace sluice::simulate {

enum class Phase : std::uint8_t { forward, backward, update };
inline constexpr std::size_t kPhaseCount = 3;
const char* phase_name(Phase phase);

using ByPhase = std::array<double, kPhaseCount>;

struct LinkUse {
  std::string name;
  // By Phase and platform::Direction; an operation counts where it ends.
  std::array<std::array<std::int64_t, 2>, kPhaseCount> size_bytes{};
  // Seconds in which the link would have been done at its full rate with what moved in a phase: of
  // the busier direction, or of both together where they share time.
  ByPhase busy_seconds{};
};

struct EngineUse {
  std::string name;
  ByPhase busy_seconds{};  // in which a kernel ran
};

struct StepTimes {
  TimeNs start_ns = 0;
  TimeNs end_ns = 0;
};

// Of a run whose steps do not become alike, the mean of several.
struct SimulatedStep {
  std::vector<StepTimes> steps;  // of virtual time: one, or those of which it is the mean
  ByPhase seconds{};
  double total_seconds = 0;
  std::vector<LinkUse> links;
  std::vector<EngineUse> engines;
  std::int64_t operation_count = 0;
};

// The settings of a simulation: `overrides` ("key=value") over those of the published measurements
// (Smart-Infinity, HPCA 2024, section VII-A), which are those of a run that fills a server: batch
// 4, the model's whole sequence, activations recomputed, 6.4 GB of buffers for gradients on their
// way. Subgroups have 85 million elements: so few that three buffer sets fit the 4 GiB of a
// SmartSSD, and so many that 0.34 billion parameters are one round on six drives as on ten, which
// took the same (figure 16a; the released configuration says 40 million).
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

// Errors: a device whose memory or drive is too small for the run (ErrorCode::memory, config);
// those of `recording`, which may be null. `listener`, which may be null as well, is told of each
// operation that ends in a step of SimulatedStep::steps or after it.
Result<SimulatedStep> simulate_step(const plan::RunPlan& plan,
                                    const SimulationRecording* recording = nullptr,
                                    runtime::OperationSink* listener = nullptr);

}  // namespace sluice::simulate
