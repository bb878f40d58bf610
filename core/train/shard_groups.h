#pragma once
// The groups of ranks that a sharded run has, and their collectives as operations. What goes on
// side by side has groups of its own of the same ranks, since a group does one call at a time, and
// on all of them in one order.
//
// Thread contract: the schedule's thread; make() blocks.

#include <memory>
#include <span>

#include "core/collective/communicator.h"
#include "core/runtime/runtime.h"
#include "core/shard/share.h"

namespace sluice::train {

class ShardGroups {
 public:
  // Collective over all ranks. The communicator outlives it.
  static Result<std::unique_ptr<ShardGroups>> make(collective::Communicator& communicator,
                                                   const shard::RankShare& share);

  bool has_replicas() const;  // other ranks have the same part of the parameters

  // A layer's parameters: `part` is this rank's, `whole` is the layer.
  runtime::Operation gather(runtime::Runtime& runtime, LayerId layer,
                            std::span<const std::uint16_t> part, std::span<std::uint16_t> whole);
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
                           std::span<std::uint16_t> parameters);

 private:
  explicit ShardGroups(collective::Communicator& communicator) : communicator_(communicator) {}
  struct Ask;
  runtime::Operation operation(runtime::Runtime& runtime, runtime::Stage stage,
                               const Ask& ask) const;

  collective::Communicator& communicator_;
  // Ranks with parts of the same parameters,
  collective::GroupId gathers_{};
  collective::GroupId scatters_{};
  collective::GroupId sums_{};
  // with the same part: all of them, and those of one scope of the state.
  collective::GroupId data_{};
  collective::GroupId state_{};
};

}  // namespace sluice::train
