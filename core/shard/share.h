#pragma once
// The share of one rank of a sharded run: its part of the parameters, and of the optimizer state of
// that part. Both are layouts (core/model/flat_layout.h) whose layers are stretches of the model's.
//
// A layer's parameters are cut into as many parts as there are ranks in their scope, in whole
// blocks of the norm (optimizer::kNormBlockElements), so the sum of a block's squares is made where
// the block is, and the norm is that of one rank. What a rank has of all layers lies one behind the
// other, and the ranks that have the same own consecutive stretches of it, in whole subgroups.
//
// Thread contract: plain data and free functions.

#include <functional>
#include <span>
#include <vector>

#include "core/model/flat_layout.h"
#include "core/shard/triple.h"
#include "storage/state/share.h"

namespace sluice::shard {

// Elements of a flat array.
struct Stretch {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Where there is no payload an array has a size and no memory, and so has a stretch of it.
template <typename T>
std::span<T> elements_of(std::span<T> all, const Stretch& stretch) {
  if (all.data() == nullptr) return {all.data(), static_cast<std::size_t>(stretch.count)};
  return all.subspan(static_cast<std::size_t>(stretch.first),
                     static_cast<std::size_t>(stretch.count));
}

// A rank's part of the parameters: of each layer the stretch that it has.
model::FlatLayout parameter_part(const model::FlatLayout& model, std::int32_t part,
                                 std::int32_t parts);
// Elements [first, first + count) of a layout, as one of its own.
model::FlatLayout stretch_of(const model::FlatLayout& layout, const Stretch& stretch);
// How `element_count` elements are owned by `parts` ranks, in whole subgroups.
std::vector<Stretch> owned_stretches(std::int64_t element_count, std::int64_t subgroup_elements,
                                     std::int32_t parts);

state::Share share_of(std::int32_t rank, const Triple& triple);

// A rank's part of a run.
struct RankShare {
  Triple triple;
  Scope mesh;
  std::int32_t rank = 0;
  state::Share share;
  model::FlatLayout parameters;  // all of the model, or the rank's part
  std::vector<Stretch> owners;   // by state part: whose state is where, elements of `parameters`
  model::FlatLayout state;       // this rank's own of them
  std::int64_t subgroup_elements = 0;

  // Whether ranks have parts of anything.
  bool is_sharded() const { return !share.is_whole(); }
  // Whether they have parts of the parameters.
  bool is_gathered() const { return share.parameter_parts > 1; }
  const Stretch& owned() const { return owners[static_cast<std::size_t>(share.state_part)]; }
};

// At most `subgroup_elements` in a subgroup: fewer where ranks would have few or none, and then
// whole groups of `group_elements`.
// Errors (ErrorCode::config): a triple that is not legal; more ranks than blocks or groups.
Result<RankShare> plan_share(const model::FlatLayout& model, const Triple& triple,
                             const Scope& mesh, std::int32_t rank, std::int64_t subgroup_elements,
                             std::int64_t group_elements = 1);

// Elements [first, first + out.size()) of `held`, of the model's elements that `of_model` gives.
using FillElements = std::function<Status(std::int64_t first, std::span<float> out)>;
Status fill_held(const model::FlatLayout& model, const model::FlatLayout& held, std::int64_t first,
                 std::span<float> out, const FillElements& of_model);

}  // namespace sluice::shard
