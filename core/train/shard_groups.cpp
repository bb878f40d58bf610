#include "core/train/shard_groups.h"

#include <algorithm>

#include "core/optimizer/gradient_stats.h"

namespace sluice::train {
namespace {

using collective::Call;
using collective::ElementType;
using collective::GroupId;
using collective::Kind;
using stages::Stage;

// All ranks make all groups of a kind, in the order of their lowest ranks; ours is returned.
Result<GroupId> make_groups(collective::Communicator& communicator, const shard::RankShare& share,
                            shard::RankList shard::RankGroups::* kind) {
  GroupId own{};
  for (std::int32_t rank = 0; rank < share.mesh.size(); ++rank) {
    const shard::RankGroups groups = shard::groups_of(rank, share.triple, share.mesh);
    const shard::RankList& ranks = groups.*kind;
    if (ranks.front() != rank) continue;  // made with its lowest rank
    ASSIGN_OR_RETURN(const GroupId made, communicator.make_group(ranks));
    if (std::ranges::find(ranks, communicator.rank()) != ranks.end()) own = made;
  }
  return own;
}

// Only their size counts: parameters are not summed.
ElementType type_of(ParameterKind kind) {
  return has_16_bits(kind) ? ElementType::bf16 : ElementType::fp32;
}

platform::Collective collective_of(Kind kind) {
  switch (kind) {
    case Kind::all_gather:
      return platform::Collective::all_gather;
    case Kind::reduce_scatter:
      return platform::Collective::reduce_scatter;
    case Kind::broadcast:
      return platform::Collective::broadcast;
    default:
      return platform::Collective::all_reduce;
  }
}

}  // namespace

std::vector<shard::CollectiveKind> ShardGroups::kinds_of(const shard::RankShare& share) {
  using platform::Collective;
  const shard::GroupShape parameters = shard::parameter_group(share.triple);
  return {{Collective::all_gather, parameters},
          {Collective::reduce_scatter, parameters},
          {Collective::all_reduce, shard::data_group(share.triple, share.mesh)},
          {Collective::broadcast, shard::state_group(share.triple)}};
}

ShardGroups::ShardGroups(collective::Communicator& communicator, const shard::RankShare& share,
                         std::shared_ptr<const shard::CollectiveLinks> costs)
    : communicator_(communicator),
      rank_(share.rank),
      state_ranks_(shard::groups_of(share.rank, share.triple, share.mesh).state),
      parameters_shape_(shard::parameter_group(share.triple)),
      data_shape_(shard::data_group(share.triple, share.mesh)),
      state_shape_(shard::state_group(share.triple)),
      costs_(std::move(costs)) {}

Result<std::unique_ptr<ShardGroups>> ShardGroups::make(
    collective::Communicator& communicator, const shard::RankShare& share,
    std::shared_ptr<const shard::CollectiveLinks> costs) {
  std::unique_ptr<ShardGroups> groups(new ShardGroups(communicator, share, std::move(costs)));
  RETURN_IF_ERROR(groups->make_with(share, [&](shard::RankList shard::RankGroups::* kind) {
    return make_groups(communicator, share, kind);
  }));
  return groups;
}

Result<std::unique_ptr<ShardGroups>> ShardGroups::make_simulated(
    collective::Communicator& alone, const shard::RankShare& share,
    std::shared_ptr<const shard::CollectiveLinks> costs) {
  std::unique_ptr<ShardGroups> groups(new ShardGroups(alone, share, std::move(costs)));
  const int own = alone.rank();
  RETURN_IF_ERROR(groups->make_with(
      share, [&](shard::RankList shard::RankGroups::*) { return alone.make_group({&own, 1}); }));
  return groups;
}

Status ShardGroups::make_with(const shard::RankShare& share, const GroupMaker& make_group) {
  using Lists = shard::RankGroups;
  if (share.is_gathered()) {
    for (GroupId* group : {&gathers_, &scatters_, &sums_}) {
      ASSIGN_OR_RETURN(*group, make_group(&Lists::parameters));
    }
  }
  ASSIGN_OR_RETURN(data_, make_group(&Lists::data));
  if (share.owners.size() == 1) return ok_status();
  ASSIGN_OR_RETURN(state_, make_group(&Lists::state));
  return ok_status();
}

// A call with what an operation has room for.
struct ShardGroups::Ask {
  std::span<const std::byte> in;
  std::span<std::byte> out;
  const char* what;
  LayerId layer;
  GroupId group;
  int root;
  Kind kind;
  ElementType type;
  bool is_in_blocks;  // shards are whole blocks of the norm

  Call call() const {
    return {.kind = kind,
            .group = group,
            .type = type,
            .in = in,
            .out = out,
            .root = root,
            .unit = is_in_blocks ? optimizer::kNormBlockElements : 1,
            .label = {.what = what, .layer = layer}};
  }
};

const shard::GroupShape& ShardGroups::shape_of(GroupId group) const {
  if (group == data_) return data_shape_;
  return group == state_ ? state_shape_ : parameters_shape_;
}

runtime::Operation ShardGroups::operation(runtime::Runtime& runtime, Stage stage,
                                          const Ask& ask) const {
  runtime::Operation operation;
  operation.runtime = &runtime;
  operation.label.stage = stage;
  operation.label.layer = ask.layer;
  // As the tables of docs/sharding.md count it: the whole.
  operation.label.size_bytes = std::max(std::ssize(ask.in), std::ssize(ask.out));
  if (costs_ != nullptr) {
    costs_->charge(operation, {collective_of(ask.kind), shape_of(ask.group)},
                   operation.label.size_bytes);
  }
  operation.work.kind = runtime::WorkKind::external;
  operation.work.start = [this, ask](runtime::Completion completion) {
    return communicator_.start(ask.call(), std::move(completion));
  };
  return operation;
}

runtime::Operation ShardGroups::gather(runtime::Runtime& runtime, LayerId layer,
                                       const ParameterSpan& part, const ParameterSpan& whole) {
  return operation(runtime, Stage::all_gather,
                   {.in = part.bytes(),
                    .out = whole.bytes(),
                    .what = "parameters",
                    .layer = layer,
                    .group = gathers_,
                    .root = 0,
                    .kind = Kind::all_gather,
                    .type = type_of(whole.kind()),
                    .is_in_blocks = true});
}

runtime::Operation ShardGroups::scatter(runtime::Runtime& runtime, LayerId layer,
                                        std::span<float> whole, const shard::Stretch& part) {
  return operation(runtime, Stage::reduce_scatter,
                   {.in = std::as_bytes(whole),
                    .out = std::as_writable_bytes(shard::elements_of(whole, part)),
                    .what = "gradients",
                    .layer = layer,
                    .group = scatters_,
                    .root = 0,
                    .kind = Kind::reduce_scatter,
                    .type = ElementType::fp32,
                    .is_in_blocks = true});
}

runtime::Operation ShardGroups::reduce(runtime::Runtime& runtime, LayerId layer,
                                       std::span<float> part) {
  return operation(runtime, Stage::all_reduce,
                   {.in = std::as_bytes(part),
                    .out = std::as_writable_bytes(part),
                    .what = "gradients",
                    .layer = layer,
                    .group = data_,
                    .root = 0,
                    .kind = Kind::all_reduce,
                    .type = ElementType::fp32,
                    .is_in_blocks = false});
}

runtime::Operation ShardGroups::gather_sums(runtime::Runtime& runtime, LayerId layer,
                                            std::span<double> whole, const shard::Stretch& part) {
  return operation(runtime, Stage::all_gather,
                   {.in = std::as_bytes(shard::elements_of(whole, part)),
                    .out = std::as_writable_bytes(whole),
                    .what = "sums of squares",
                    .layer = layer,
                    .group = sums_,
                    .root = 0,
                    .kind = Kind::all_gather,
                    .type = ElementType::fp64,
                    .is_in_blocks = false});
}

runtime::Operation ShardGroups::share(runtime::Runtime& runtime, std::int32_t state_part,
                                      const ParameterSpan& parameters) {
  const int root = state_ranks_[static_cast<std::size_t>(state_part)];
  const bool is_own = root == rank_;
  return operation(runtime, Stage::broadcast,
                   {.in = is_own ? parameters.bytes() : std::span<std::byte>(),
                    .out = parameters.bytes(),
                    .what = "updated parameters",
                    .layer = kNoLayer,
                    .group = state_,
                    .root = root,
                    .kind = Kind::broadcast,
                    .type = type_of(parameters.kind()),
                    .is_in_blocks = false});
}

}  // namespace sluice::train
