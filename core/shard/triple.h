#pragma once
// Over how many ranks parameters, gradients and optimizer state are each sharded, and which choices
// are legal. The rules are those of AMSP (arXiv 2311.00257); docs/sharding.md is the page.
//
// Thread contract: plain data and free functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/platform/cluster.h"

namespace sluice::shard {

using platform::Scope;

// 1x1: every rank has all of it. A mesh is the scope of all ranks.
struct Triple {
  Scope parameters;
  Scope gradients;
  Scope state;
  friend bool operator==(const Triple&, const Triple&) = default;
};

std::string triple_text(const Triple& triple);  // "4x1,4x1,8x1"

// Errors (ErrorCode::config) name the rule that is broken:
//   order         s_p <= s_g <= s_os <= the mesh, in ranks of a node and in nodes
//   divisibility  each scope divides the next and the mesh, in ranks of a node and in nodes
//   node fill     a scope spans nodes only with all ranks of each
//   gradients     s_g is s_p or s_os
Status check_triple(const Triple& triple, const Scope& mesh);

// All legal ones, from the least sharded on.
std::vector<Triple> all_triples(const Scope& mesh);

// The published schemes: "data_parallel", "zero1", "zero2", "zero3", "mics" (of one node).
std::vector<std::string> scheme_names();
std::optional<Triple> scheme(std::string_view name, const Scope& mesh);
// The first scheme that this is; "" if none. MiCS of any scope is "mics".
std::string scheme_of(const Triple& triple, const Scope& mesh);

// A scheme's name, "mics:8x2", or three scopes such as "4x1,4x1,8x1"; legal on the mesh.
Result<Triple> parse_triple(std::string_view text, const Scope& mesh);

}  // namespace sluice::shard
