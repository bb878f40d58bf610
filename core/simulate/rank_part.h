#pragma once
// A step of one of several ranks that each have the whole model (core/train/ranks.h), in simulated
// time: each has a machine like the platform's, with drives of its own, and its gradients' sums
// cross the links of the platform's cluster. Ranks are alike, so that the others are no later, and
// one of them is the step of all.
//
// Thread contract: one call on one thread; deterministic.

#include <memory>

#include "core/collective/communicator.h"
#include "core/simulate/simulation.h"
#include "core/train/ranks.h"

namespace sluice::simulate {

class RankPart {
 public:
  // One of as many ranks as the plan's config has. Adds the cluster's links to the plan's platform.
  // Errors (ErrorCode::config): the platform has no cluster, or that has no such part.
  static Result<RankPart> take(plan::RunPlan& plan);

  train::Ranks& ranks() const { return *ranks_; }
  std::string mesh() const { return platform::scope_text(ranks_->costs()->mesh()); }

 private:
  RankPart() = default;
  // The end of a rank that is alone: nothing is sent in simulated time.
  std::unique_ptr<collective::Communicator> alone_;
  std::unique_ptr<train::Ranks> ranks_;
};

// The step of that rank: simulate_step() with the sums of its gradients.
Result<SimulatedStep> simulate_rank(const plan::RunPlan& plan, const RankPart& part,
                                    const SimulationRecording* recording = nullptr);

}  // namespace sluice::simulate
