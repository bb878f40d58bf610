#pragma once
// Which settings make a step shortest, found by simulating it. Coordinate descent: each knob takes
// its best value in turn until none improves; then `joint` knobs are moved together, a few values
// up or down. Repeated for every value of a `fork`. A heuristic: tests/core/tune/tuning_test.cpp
// compares it with an exhaustive search.
//
// Thread contract: one call on one thread; deterministic if `evaluate` is.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/platform/platform.h"

namespace sluice::plan {
struct RunPlan;
}
namespace sluice::settings {
struct RunConfig;
}

namespace sluice::tune {

struct TuneKnob {
  std::string key;
  std::vector<std::string> values;
  enum class Kind : std::uint8_t {
    single,
    fork,   // the best of the others depends on it: a search for each of its values
    joint,  // only together with the other joint ones does a change show its worth
  };
  Kind kind = Kind::single;
  int reach = 1;  // of a joint one: values up or down that are tried with the others
};

// The knobs that do not change what the model learns: method, pipeline, buffers, subgroup_elements,
// wire, overlap, gradient_tier. A run that clips by subgroup (overlap=local) keeps overlap and
// subgroup_elements, since its numbers follow from them; no other is given that.
std::vector<TuneKnob> tune_knobs(const settings::RunConfig& config);

// Shares of the subgroups where the devices are not alike: even, and those at which every drive, or
// every drive and its engine, would be done with its share at the same time, and between and beyond
// them. No knob where all devices are alike.
std::optional<TuneKnob> device_map_knob(const platform::Platform& platform);

// Densities from 1 down to `least`.
TuneKnob density_knob(double least);

// The changes that may be tried by themselves on a run, on a machine that has so many devices: the
// values of each knob that are not in force, the nearest first. Those of tune_knobs(), of subgroups
// only the next sizes, and more of what a run has too little of: devices, requests in flight,
// memory for gradients on their way. density=0.01 is the only one that changes what is learned.
std::vector<TuneKnob> single_changes(const plan::RunPlan& plan, std::int64_t device_count);

using TuneSettings = std::map<std::string, std::string>;  // key -> value, of the knobs

// Seconds a step with these settings; infinite where they do not fit the machine.
using TuneEvaluate = std::function<Result<double>(const TuneSettings&)>;

struct TuneChange {
  std::string key;
  std::string from;
  std::string to;
  double worth_seconds = 0;  // by which a step is longer with all other changes but not this one;
                             // infinite if the others would not fit the machine then
};

struct TuneResult {
  TuneSettings best;
  double start_seconds = 0;
  double best_seconds = 0;
  std::vector<TuneChange> changes;  // from the start to the best, in the knobs' order
  int evaluation_count = 0;
};

// `start` has a value for each knob. Errors: those of `evaluate`.
Result<TuneResult> tune(const std::vector<TuneKnob>& knobs, const TuneSettings& start,
                        const TuneEvaluate& evaluate);

// tune() by simulated steps, from the settings of `start`. `plan_of` is the plan with these values
// of the knobs; one that does not fit the machine takes for ever.
using TunePlan = std::function<Result<plan::RunPlan>(const TuneSettings&)>;
Result<TuneResult> tune_simulated(const std::vector<TuneKnob>& knobs,
                                  const settings::RunConfig& start, const TunePlan& plan_of);

}  // namespace sluice::tune
