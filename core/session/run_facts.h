#pragma once
// The facts that the run database has of a run before its first step: versions, machine, devices,
// links, subgroups, and stages.
//
// Thread contract: free functions.

#include <string>

#include "profiler/collect/collector.h"
#include "profiler/record/recorder.h"

namespace sluice::plan {
struct RunPlan;
}
namespace sluice::settings {
struct RunConfig;
}
namespace sluice::state {
class Layout;
}

namespace sluice::session {

// By which clock a run goes: what its settings say, or simulated time.
enum class ModeClock : std::uint8_t { of_settings, simulated };

// The hardware that a run works with, as it says itself.
struct RunHardware {
  std::string devices;   // of method=csd: csd::DeviceFactory::description()
  std::string computes;  // model::ComputeDevice::description(); empty: the host
  std::string ranks;     // whose communication is emulated: "2x2"; empty: none is
};

// One line that names the modes that stand in for hardware (D8), and clipping that is not by the
// norm of all gradients. A simulation has no hardware.
std::string mode_line(const settings::RunConfig& config, ModeClock clock,
                      const RunHardware& hardware);

// `layout` says which device has which subgroup; `recorder` names the stages.
collect::RunFacts run_facts(const plan::RunPlan& plan, ModeClock clock, record::Recorder& recorder,
                            const state::Layout& layout);

}  // namespace sluice::session
