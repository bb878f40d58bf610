#pragma once
// A platform fitted to a recorded run: its rates are changed until the schedule, simulated with the
// run's settings, keeps links and kernels busy as long as they were recorded to be.
//
// Only rates are fitted, each from the operations that it is the rate of; no factor stretches a
// phase or a step. What the phases still differ by after the fit is therefore a fair estimate of
// what the model leaves out.
//
// Kernels (kernel_fit.h). The simulation knows what each kernel is charged. The rate of a kernel is
// multiplied by charged time / recorded time of the same kernels, the recorded time being the part
// of the processor's time that they took (recorded_steps.h), less what the file's
// processor_bandwidth says that transfers took of it meanwhile. Forward and backward have two
// rates, products and values handled one by one, told apart by their different shares in the
// layers.
//
// Links (link_fit.h). Transfers share links, wait for buffers and read and write in turn on a half
// duplex drive, so that bytes / time is the rate of no single link. Instead each link's rate is
// lowered in simulation, one after the other, which says how much it has to do with the time that
// the transfers of each stage take; then rates are changed so that recorded and simulated time a
// byte agree, as little as does it (least squares of logarithms), and that again and again, since
// what bounds a transfer can be another link at another rate. The simplest explanation is
// preferred. Devices with equal rates share one factor unless separate factors cut the mismatch by
// 10 %. Links that devices share are fitted only if the devices' own leave 1.5 times the best
// mismatch. A rate returns to the file's value if that costs at most 2 %. A link that never bounds
// anything so keeps its rate: the recording shows only that it is not slower than what it carried.
//
// Rates are fitted to the half of the steps that are nearest the median in length, so that one step
// in which the machine did something else does not count as the machine's speed; phases are
// compared with the median of all.
//
// Not fitted: latencies, launch times, the shape of chunk curves (which are scaled with their
// link), and what simulation charges nothing for, such as commits.
//
// Thread contract: one call on one thread; deterministic.

#include <array>
#include <string>
#include <vector>

#include "base/stops.h"
#include "core/platform/platform.h"
#include "core/tune/recorded_steps.h"

namespace sluice::settings {
struct RunConfig;
}

namespace sluice::tune {

struct RecordedModel;

// A rate of a link or an engine of the devices used.
struct FittedRate {
  std::string owner;  // "host", "csd0.drive", "csd0.engine"
  std::string key;    // "read", "adamw"; as in the platform file
  double before = 0;
  double after = 0;
  bool is_fitted = false;  // false: nothing recorded depends on it
};

// Seconds.
struct PhaseFit {
  double recorded = 0;  // median
  double low = 0;       // a tenth of the recorded steps is below
  double high = 0;      // and a tenth above
  double before = 0;    // simulated on the platform as the file says
  double after = 0;     // and as fitted

  double error_before() const { return before / recorded - 1; }
  double error_after() const { return after / recorded - 1; }
};

struct PlatformFit {
  platform::Platform platform;  // with all devices: those not used as their likes were fitted
  std::vector<FittedRate> rates;
  std::array<PhaseFit, simulate::kPhaseCount> phases;
  PhaseFit step;
  int step_count = 0;

  // Otherwise a prediction from the fitted platform is not to be taken at its word.
  bool is_good() const;
  std::size_t worst_phase() const;  // with the most seconds that are not explained
};

// `config` is that of the recorded steps, `platform` has at least as many devices as it asks for.
// Errors: those of RecordedModel::plan() and simulate_step(); ErrorCode::config if `recorded` has
// no steps or no operations; those of `stops`.
Result<PlatformFit> fit_platform(const settings::RunConfig& config, const RecordedModel& model,
                                 const platform::Platform& platform, RecordedSteps recorded,
                                 const Stops& stops = {});

}  // namespace sluice::tune
