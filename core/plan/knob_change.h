#pragma once
// A change of knobs as a value: planned once, by whoever is asked for it, then applied by the run.
//
// Thread contract: plain data and a free function, which asks the file system; the control socket's
// thread plans on a copy of what the run has, while the run computes.

#include <functional>
#include <string>
#include <vector>

#include "core/plan/memory_plan.h"
#include "core/plan/run_plan.h"

namespace sluice::plan {

// The plan of a live run: the ground that a change starts from.
struct LivePlan {
  RunPlan run;
  // The memory that the model would take by another plan; from any thread.
  std::function<ModelMemory(const RunPlan&)> model_memory;
  std::vector<std::string> state_files;  // one a device
  bool is_recorded = false;
  bool moves_activations = true;  // the model has blocks that can leave
};

// The run's plans with the changed knobs.
struct PlannedKnobs {
  RunPlan run;
  ModelMemory model;
  MemoryPlan memory;
};

// Plans the live run with changed knobs (settings::with_knobs). Memory that it already holds counts
// as available. Errors: what the settings ask that the machine does not have, each with the
// numbers.
Result<PlannedKnobs> plan_knobs(const LivePlan& live, const settings::RunConfig& wanted);

// Whether other layers' activations leave memory, or for another place.
bool moves_other_activations(const settings::RunConfig& from, const settings::RunConfig& to);
// False: the offload that a run has goes on with the new values (record, prefetch, replan).
bool needs_new_offload(const RunPlan& from, const RunPlan& to);

}  // namespace sluice::plan
