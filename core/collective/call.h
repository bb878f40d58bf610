#pragma once
// A collective call: what every rank of a group asks for, in the same order of calls of that group
// (docs/collective.md). "Rank" is always a rank of the world; a rank's place in a group's list says
// which shard is its own.
//
// Thread contract: plain data and free functions, any thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"
#include "core/collective/shard.h"

namespace sluice::collective {

enum class GroupId : std::int32_t {};  // in the order in which groups were made
inline constexpr GroupId kWorld{0};    // all ranks, in order; there from the start
constexpr std::int32_t index_of(GroupId id) { return static_cast<std::int32_t>(id); }

// The input and the output, of n elements and a group of p ranks:
//
//   kind            in                  out
//   all_gather      own shard           n: the shards in the order of the group
//   reduce_scatter  n                   own shard of the sum
//   all_reduce      n                   n: the sum
//   broadcast       n at root, else -   n
//   minimum         one int64           one int64
//   maximum         one int64           one int64
//   barrier         -                   -
//
// The last three are agreements: for start-up and commits, of a few bytes. In place: `in` is the
// own shard's place in `out` (all_gather), `out` that in `in` (reduce_scatter), or `in` is `out`
// (all_reduce, broadcast). Any other overlap is refused.
enum class Kind : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  minimum,
  maximum,
  barrier,
};
inline constexpr std::size_t kKindCount = 7;
std::string_view kind_name(Kind kind);

// The type of an element. bytes: nothing is summed.
enum class ElementType : std::uint8_t { bf16, fp16, fp32, fp64, bytes };
std::string_view type_name(ElementType type);
constexpr std::int64_t element_bytes(ElementType type) {
  constexpr std::array<std::int64_t, 5> kBytes = {2, 2, 4, 8, 1};
  return kBytes[static_cast<std::size_t>(type)];
}

constexpr bool is_agreement(Kind kind) { return kind >= Kind::minimum; }
constexpr bool is_reduction(Kind kind) {
  return kind == Kind::reduce_scatter || kind == Kind::all_reduce;
}

// For messages, and part of what ranks must agree on.
struct CallLabel {
  const char* what = "";  // "parameters"; outlives the call
  LayerId layer = kNoLayer;
  std::int32_t step = -1;
};

struct Call {
  Kind kind = Kind::barrier;
  GroupId group = kWorld;
  ElementType type = ElementType::bytes;
  // Both are the caller's, and stay untouched by it from start() to the note.
  std::span<const std::byte> in;
  std::span<std::byte> out;
  int root = 0;  // broadcast: a rank of the world, and of the group
  // all_gather, reduce_scatter: shards are whole units of so many elements (shard.h).
  std::int64_t unit = 1;
  CallLabel label;
};

// n of the table above.
std::int64_t element_count(const Call& call);
// The elements of the rank at `place` of a group.
Shard shard_of(const Call& call, std::size_t rank_count, std::size_t place);

// Whether spans, type, root and overlap fit the kind. `ranks`: of the group, `rank`: who calls.
// Errors: ErrorCode::internal, with what was asked and what is wanted.
Status check_call(const Call& call, std::span<const int> ranks, int rank);

// "all_reduce of 12 elements fp32 (gradients, layer 3, step 7)"
std::string call_text(const Call& call);
// "rank 2", "ranks 0, 2, 5"
std::string ranks_text(std::span<const int> ranks);

}  // namespace sluice::collective
