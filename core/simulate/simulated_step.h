#pragma once
// The figures of a simulated step: how long its phases took, what moved over each link and how long
// links and engines were busy.
//
// Thread contract: plain data.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/simulate/phases.h"
#include "core/stages/activation_events.h"

namespace sluice::simulate {

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
  ByPhase busy_seconds{};  // in which a kernel ran; of several compute units, their mean
};

struct StepTimes {
  TimeNs start_ns = 0;
  TimeNs end_ns = 0;
};

// The mean of several where a run's steps do not become alike.
struct SimulatedStep {
  std::vector<StepTimes> steps;  // of virtual time: one, or those of which it is the mean
  ByPhase seconds{};
  double total_seconds = 0;
  std::vector<LinkUse> links;
  std::vector<EngineUse> engines;
  std::int64_t operation_count = 0;
  // How long forward and backward waited for activations, by stages::ActivationWait.
  std::array<double, stages::kActivationWaitCount> activation_wait_seconds{};
};

}  // namespace sluice::simulate
