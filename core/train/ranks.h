#pragma once
// A run of several ranks: every rank computes other samples of a step's batch, the gradients are
// added up over the ranks, and each updates the state that it has, on drives of its own: all of it,
// or its part (shard_traffic.h). Rank r has the micro-batches that follow those of rank r - 1 in
// the text, so a step sees what one rank would with as many micro-batches.
//
// Gradients are summed in fp32 in the order of the ranks, layer by layer, beside the backward of
// the layers below. With one micro-batch a rank the sum is, to the bit, what one rank accumulates.
//
// A commit is one of all ranks: none goes on to write over the version before it until all have
// made theirs durable. So after a crash all have the newest step that some rank has, or the one
// before it, and agree on that (last_common_step).
//
// Thread contract: the schedule's thread. What blocks is for between steps.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/collective/communicator.h"
#include "core/runtime/runtime.h"
#include "core/shard/collective_links.h"
#include "core/train/shard_groups.h"

namespace sluice::train {

class Ranks {
 public:
  // Collective over all ranks. The communicator outlives it.
  static Result<std::unique_ptr<Ranks>> make(collective::Communicator& communicator);

  int rank() const { return communicator_.rank(); }
  int count() const { return communicator_.rank_count(); }
  bool is_first() const { return rank() == 0; }

  // Collectives cost from now on what the platform's cluster says of so many of its ranks; adds the
  // links to the platform, before a clock is made of it. Without a cluster they cost nothing.
  // Errors (ErrorCode::config): the cluster has no such part, or another shape than a sharded run.
  Status charge(platform::Platform& platform, std::int32_t rank_count,
                const shard::RankShare& share);
  // Null: sums cost nothing.
  const shard::CollectiveLinks* costs() const { return costs_.get(); }
  // Which links their sums are charged on, as a word for people; "": none.
  std::string scope() const;

  // Adds up a layer's gradient over all ranks, in place; all ranks, in the same order of layers.
  runtime::Operation sum_gradient(runtime::Runtime& runtime, LayerId layer,
                                  std::span<float> values);
  // Until all ranks have made the step's commit durable.
  runtime::Operation all_committed(runtime::Runtime& runtime, std::int32_t step);

  // All ranks' values, in their order; as many of each.
  Result<std::vector<double>> gather(std::span<const double> values, const char* what);
  Result<std::vector<TimeNs>> gather_times(std::span<const TimeNs> times, const char* what);
  // All ranks' texts, in their order.
  Result<std::vector<std::string>> gather_text(std::string_view text, const char* what);
  // The bytes that rank `root` has, on all of them.
  Status hand_on(std::span<std::byte> bytes, int root, const char* what);
  // The first failure among the ranks, on all of them, with the rank's name.
  Status agreed(const Status& mine, const char* what);
  // The same where a failure is the end of the run: afterwards all ranks know of it, and the first
  // one says it for all.
  Status agreed_or_end(const Status& mine, const char* what);
  bool is_ended() const { return is_ended_; }
  // The groups that a sharded run has besides. Collective over all ranks.
  Result<std::unique_ptr<ShardGroups>> make_shard_groups(const shard::RankShare& share) {
    return ShardGroups::make(communicator_, share, costs_);
  }
  // The same of rank share.rank where there is but this one (ShardGroups::make_simulated).
  Result<std::unique_ptr<ShardGroups>> make_simulated_groups(const shard::RankShare& share) {
    return ShardGroups::make_simulated(communicator_, share, costs_);
  }
  // The newest step that all ranks can go on from: a rank's last commit or the one before it
  // (storage/state/return_to.h).
  Result<std::int64_t> last_common_step(std::int64_t last_committed);

 private:
  Ranks(collective::Communicator& communicator, collective::GroupId gradients,
        collective::GroupId commits)
      : communicator_(communicator), gradients_(gradients), commits_(commits) {}

  bool is_ended_ = false;
  collective::Communicator& communicator_;
  // Both are of all ranks: their calls come in no order to one another.
  collective::GroupId gradients_;
  collective::GroupId commits_;
  std::shared_ptr<const shard::CollectiveLinks> costs_;
};

}  // namespace sluice::train
