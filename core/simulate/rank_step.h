#pragma once
// AMSP's step of one rank among many: forward and backward by layer and micro-batch, the
// collectives between them, the update, and what of all this goes on at the same time.
//
// Thread contract: the owner thread of the runtime.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "core/runtime/sync.h"
#include "core/shard/overlaps.h"
#include "core/simulate/rank_machine.h"

namespace sluice::simulate {

// The plan of a step: its parts and their order.
struct RankPlan {
  std::int32_t layer_count = 0;
  std::int64_t micro_step_count = 1;
  bool is_gathered = false;     // parameters are in parts
  bool is_accumulated = false;  // gradients are reduced after each micro-batch
  bool is_reduced = false;      // and after the last
  std::int32_t backward_gathers = 1;
  // By bucket, which are numbered in the order in which backward fills them: the layer that does.
  std::vector<LayerId> filled_by;
  // By layer: the first and the last owner of its parameters. No owners: a rank updates all it has.
  std::int32_t owner_count = 0;
  struct Owners {
    std::int32_t first;
    std::int32_t last;
  };
  std::vector<Owners> owners;
};
RankPlan plan_rank(const shard::StepShape& step, const shard::Triple& triple,
                   const platform::Scope& mesh);
// StepShape::gathers with these overlaps; `recomputes`: backward computes each layer's forward
// anew.
std::int64_t gathers_of(bool recomputes, const shard::Overlaps& overlaps);

// Takes steps; what a step leaves under way (Overlap::share_forward) the next one waits for.
class RankStep {
 public:
  RankStep(runtime::Runtime& runtime, SimulatedRank& operations, RankPlan plan,
           const shard::Overlaps& overlaps);

  // Ends with the update, or with the last broadcast where that does not go on beside forward.
  runtime::Task<Status> step();
  // Waits for what is under way; before the runtime goes.
  runtime::Task<Status> settle();

 private:
  using Events = std::vector<std::unique_ptr<runtime::Event>>;

  runtime::Task<Status> take();
  runtime::Task<Status> forward_pass();
  runtime::Task<Status> backward_pass(std::int64_t micro_step);
  runtime::Task<Status> finish_gradients();
  runtime::Task<Status> gather(LayerId layer, std::int32_t times);
  runtime::Task<Status> scatter(LayerId layer);
  runtime::Task<Status> reduce(std::int32_t bucket, shard::Purpose purpose);
  runtime::Task<Status> share_all();
  runtime::Task<Status> wait_for_owners(LayerId layer);
  runtime::Task<Status> wait_for_parameters(LayerId layer, std::int32_t gathers);
  void begin_gather(LayerId layer, std::int32_t times);
  // The buckets that this layer's backward fills.
  void begin_reducing(LayerId layer, shard::Purpose purpose);
  bool is_reduced_in(std::int64_t micro_step) const;
  shard::Purpose purpose_in(std::int64_t micro_step) const;
  static runtime::Event& of(Events& events, std::int32_t index) {
    return *events[static_cast<std::size_t>(index)];
  }
  Events make_events(std::int32_t count);

  runtime::Runtime& runtime_;
  SimulatedRank& operations_;
  RankPlan plan_;
  shard::Overlaps overlaps_;
  // A group of ranks does one collective at a time, on every rank in the same order.
  runtime::Pool parameters_turn_;
  runtime::Pool reduce_turn_;
  runtime::TaskGroup gathers_;
  runtime::TaskGroup gradients_;
  runtime::TaskGroup shares_;
  std::vector<bool> is_begun_;  // by layer: its gather
  Events gathered_;             // by layer
  Events scattered_;            // by layer
  Events shared_;               // by owner
};

}  // namespace sluice::simulate
