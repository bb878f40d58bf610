#pragma once
// A step in the other order of micro-batches: each goes forward and backward through all layers
// before the next one begins, where a run has all of them go through a layer before the next layer.
// An accelerator then gets each layer's parameters twice for every micro-batch, and the gradients
// of every micro-batch leave it; host memory holds their sum. Simulated alone, to say what the
// order of a run saves.
//
// Thread contract: the schedule's thread.

#include <string>

#include "core/simulate/simulation.h"
#include "core/train/training_step.h"

namespace sluice::simulate {

// Why the order makes no difference for the plan, or none that is modelled; "": it does.
std::string why_no_other_order(const plan::RunPlan& plan);

// As train::training_step(), of a plan that has another order.
runtime::Task<Status> step_by_batches(train::StepContext& context, const session::StepPlan& plan,
                                      train::StepOutcome& outcome);

// As simulate_step(), in that order. ErrorCode::unsupported with the words of
// why_no_other_order().
Result<SimulatedStep> simulate_by_batches(const plan::RunPlan& plan);

}  // namespace sluice::simulate
