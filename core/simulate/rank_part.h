#pragma once
// A step of one of several ranks (core/train/ranks.h) in simulated time, which have the whole model
// each, or parts of it (core/train/shard_traffic.h): the step of a run that trains, as it is. Each
// rank has a machine like the platform's, with drives of its own, and what they bring to one
// another crosses the links of the platform's cluster. Ranks are alike, so that the others are no
// later, and one of them is the step of all. With shards it is rank 0, whose updated parameters go
// first: when its own are sent, the others' are ready.
//
// Thread contract: one call on one thread; deterministic.

#include <memory>
#include <string>

#include "core/shard/overlaps.h"
#include "core/simulate/simulation.h"

namespace sluice::collective {
class Communicator;
}
namespace sluice::train {
class Ranks;
class ShardGroups;
}  // namespace sluice::train

namespace sluice::simulate {

class RankPart {
 public:
  // One of as many ranks as the plan's config has. Adds the cluster's links to the plan's platform.
  // Errors (ErrorCode::config): the platform has no cluster, or that has no such part; a word of
  // shard_overlap that is none.
  static Result<RankPart> take(plan::RunPlan& plan);
  RankPart(RankPart&& other) noexcept;
  RankPart& operator=(RankPart&& other) noexcept;
  ~RankPart();

  train::Ranks& ranks() const { return *ranks_; }
  // Null: each rank has the whole model.
  train::ShardGroups* groups() const { return groups_.get(); }
  const shard::Overlaps& overlaps() const { return overlaps_; }
  std::string mesh() const;

 private:
  RankPart();
  // The end of a rank that is alone: nothing is sent in simulated time.
  std::unique_ptr<collective::Communicator> alone_;
  std::unique_ptr<train::Ranks> ranks_;
  std::unique_ptr<train::ShardGroups> groups_;
  shard::Overlaps overlaps_ = shard::Overlaps::all();
};

// The step of that rank: simulate_step() with what it gets from the others and sends to them.
Result<SimulatedStep> simulate_rank(const plan::RunPlan& plan, const RankPart& part,
                                    const SimulationRecording* recording = nullptr,
                                    runtime::OperationSink* listener = nullptr);

}  // namespace sluice::simulate
