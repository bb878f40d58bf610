#pragma once
// Which collectives a rank takes part in during a step, how many, and of how many bytes: AMSP's
// table (docs/sharding.md). Parameters and gradients have 16 bits, or are in fp32.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <span>
#include <vector>

#include "base/parameter_span.h"
#include "core/shard/groups.h"

namespace sluice::shard {

using platform::Collective;

struct StepShape {
  // Parameters of what is gathered and scattered together, in the order of forward.
  std::vector<std::int64_t> module_elements;
  // How many of these each layer has, in the same order; empty: each module is a layer.
  std::vector<std::int32_t> layer_modules = {};
  std::int64_t micro_batches = 1;
  // A module's in a micro-batch: one before forward and one before backward. 3 where backward
  // computes a module's forward anew and does not keep what was gathered for that.
  std::int64_t gathers = 2;
  ParameterKind precision = ParameterKind::bf16;        // of parameters and gradients
  std::int64_t bucket_bytes = std::int64_t{512} << 20;  // of a rank's gradients, reduced together

  std::int64_t parameter_count() const;
  std::vector<std::span<const std::int64_t>> layers() const;  // their modules
};

enum class Purpose : std::uint8_t {
  gather,      // parameters, before a module is computed
  scatter,     // gradients of a module, to the ranks that have its parameters
  accumulate,  // gradients of all micro-batches but the last, within their scope
  reduce,      // gradients of the last micro-batch, among all ranks
  share,       // updated parameters, from the rank that owns their state
};
inline constexpr std::size_t kPurposeCount = 5;

// `count` collectives of the same size.
struct CollectiveUse {
  Purpose purpose = Purpose::gather;
  Collective collective = Collective::all_gather;
  GroupShape group;
  std::int64_t size_bytes = 0;  // of the whole tensor, of which a rank may have a part
  std::int64_t count = 0;

  std::int64_t all_bytes() const { return size_bytes * count; }
};

// Parts are equal: a module that s_p ranks do not divide is filled up. What a group of one rank
// would do is left out.
std::vector<CollectiveUse> step_collectives(const StepShape& step, const Triple& triple,
                                            const Scope& mesh);

// Elements of the parameters that one rank holds, and of the part of these that it owns the state
// of.
std::int64_t held_elements(const StepShape& step, const Triple& triple);
std::int64_t owned_elements(const StepShape& step, const Triple& triple);

// The bytes that each rank of a ring sends to the next. A broadcast sends nothing back to where it
// began, and is counted as if it did.
std::int64_t ring_edge_bytes(Collective collective, std::int64_t size_bytes, std::int32_t ranks);

}  // namespace sluice::shard
