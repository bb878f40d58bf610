#pragma once
// The groups of ranks that a sharded run has, and their collectives as operations. What goes on
// side by side has groups of its own of the same ranks, since a group does one call at a time, and
// on all of them in one order.
//
// Thread contract: the schedule's thread; make() blocks.

#include <functional>
#include <memory>
#include <span>

#include "base/parameter_span.h"
#include "core/collective/communicator.h"
#include "core/runtime/runtime.h"
#include "core/shard/collective_links.h"
#include "core/shard/groups.h"
#include "core/shard/share.h"

namespace sluice::train {

class ShardGroups {
 public:
  // Collective over all ranks. The communicator outlives it. `costs`: what the collectives of
  // kinds_of() cost; null: nothing but what they take.
  static Result<std::unique_ptr<ShardGroups>> make(
      collective::Communicator& communicator, const shard::RankShare& share,
      std::shared_ptr<const shard::CollectiveLinks> costs);
  // In simulated time, where no operation's work is begun: the groups of rank `share.rank`, made of
  // the one rank that there is. It has no others to wait for.
  static Result<std::unique_ptr<ShardGroups>> make_simulated(
      collective::Communicator& alone, const shard::RankShare& share,
      std::shared_ptr<const shard::CollectiveLinks> costs);
  static std::vector<shard::CollectiveKind> kinds_of(const shard::RankShare& share);

  // Other ranks have the same part of the parameters.
  bool has_replicas() const { return data_shape_.scope.size() > 1; }

  // A layer's parameters: `part` is this rank's, `whole` is the layer.
  runtime::Operation gather(runtime::Runtime& runtime, LayerId layer, const ParameterSpan& part,
                            const ParameterSpan& whole);
  // A layer's gradients: the sum's part of this rank comes into its place in `whole`.
  runtime::Operation scatter(runtime::Runtime& runtime, LayerId layer, std::span<float> whole,
                             const shard::Stretch& part);
  // The same part of a layer's gradients, summed over all ranks that have it.
  runtime::Operation reduce(runtime::Runtime& runtime, LayerId layer, std::span<float> part);
  // The sums of squares of a layer's blocks; those of this rank's part are in their place.
  runtime::Operation gather_sums(runtime::Runtime& runtime, LayerId layer, std::span<double> whole,
                                 const shard::Stretch& part);
  // Updated parameters, from the rank that owns the state of this part to those that have them.
  runtime::Operation share(runtime::Runtime& runtime, std::int32_t state_part,
                           const ParameterSpan& parameters);

 private:
  ShardGroups(collective::Communicator& communicator, const shard::RankShare& share,
              std::shared_ptr<const shard::CollectiveLinks> costs);
  using GroupMaker =
      std::function<Result<collective::GroupId>(shard::RankList shard::RankGroups::*)>;
  // The groups that a sharding has, each as the maker makes that kind.
  Status make_with(const shard::RankShare& share, const GroupMaker& make_group);
  struct Ask;
  const shard::GroupShape& shape_of(collective::GroupId group) const;
  runtime::Operation operation(runtime::Runtime& runtime, stages::Stage stage,
                               const Ask& ask) const;

  collective::Communicator& communicator_;
  std::int32_t rank_;
  shard::RankList state_ranks_;  // by state part: whose it is
  // Ranks with parts of the same parameters,
  collective::GroupId gathers_{-1};
  collective::GroupId scatters_{-1};
  collective::GroupId sums_{-1};
  // with the same part: all of them, and those of one scope of the state.
  collective::GroupId data_{-1};
  collective::GroupId state_{-1};
  // As the links see them.
  shard::GroupShape parameters_shape_;
  shard::GroupShape data_shape_;
  shard::GroupShape state_shape_;
  std::shared_ptr<const shard::CollectiveLinks> costs_;
};

}  // namespace sluice::train
