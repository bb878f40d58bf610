#include "core/plan/rank_share.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/nearest.h"
#include "core/shard/overlaps.h"

namespace sluice::plan {
namespace {

using platform::Scope;

Result<Scope> scope_of(const char* key, const std::string& text) {
  const Result<Scope> scope = platform::parse_scope(text);
  if (scope.ok()) return scope;
  return make_error(ErrorCode::config, "{}={}: {}", key, text, scope.error().message());
}

// One word says all three: auto, or a scheme's name.
bool is_one_word(const settings::ShardConfig& shards) {
  return shards.parameters == shards.gradients && shards.gradients == shards.state;
}

Result<shard::Triple> triple_of(const settings::RunConfig& config, const Scope& mesh) {
  const settings::ShardConfig& shards = config.shards;
  if (is_sharding_open(config)) {
    return make_error(ErrorCode::config,
                      "shard_state=auto: this command takes scopes; sluice tune --placement "
                      "--ranks {} finds them",
                      platform::scope_text(mesh));
  }
  if (is_one_word(shards)) {
    if (shards.state == "auto") return shard::Triple{};
    if (!platform::parse_scope(shards.state).ok()) return shard::parse_triple(shards.state, mesh);
  }
  shard::Triple triple;
  ASSIGN_OR_RETURN(triple.parameters, scope_of("shard_parameters", shards.parameters));
  ASSIGN_OR_RETURN(triple.gradients, scope_of("shard_gradients", shards.gradients));
  ASSIGN_OR_RETURN(triple.state, scope_of("shard_state", shards.state));
  return triple;
}

}  // namespace

bool is_sharding_open(const settings::RunConfig& config) {
  return config.batch.rank_count > 1 && is_one_word(config.shards) && config.shards.state == "auto";
}

Result<Scope> mesh_of(const settings::RunConfig& config) {
  const auto rank_count = static_cast<std::int32_t>(config.batch.rank_count);
  const std::int32_t node_ranks = config.shards.node_ranks;
  if (config.shards.mesh != "auto") {
    ASSIGN_OR_RETURN(const Scope mesh, scope_of("mesh", config.shards.mesh));
    if (mesh.size() == rank_count) return mesh;
    return make_error(ErrorCode::config,
                      "mesh={}: that is {} ranks, and the launcher has started {}",
                      config.shards.mesh, mesh.size(), rank_count);
  }
  if (node_ranks > 0 && rank_count % node_ranks == 0) {
    return Scope{node_ranks, rank_count / node_ranks};
  }
  // Whoever shards nothing may have ranks where he likes.
  return Scope{rank_count, 1};
}

Result<shard::RankShare> plan_rank_share(const settings::RunConfig& config,
                                         const model::FlatLayout& layout) {
  RETURN_IF_ERROR(shard_overlaps(config));
  ASSIGN_OR_RETURN(const Scope mesh, mesh_of(config));
  ASSIGN_OR_RETURN(const shard::Triple triple, triple_of(config, mesh));
  const bool is_sharded = triple != shard::Triple{};
  if (is_sharded && config.batch.rank_count == 1) {
    return make_error(
        ErrorCode::config,
        "shard_parameters={} shard_gradients={} shard_state={}: a run of one rank has "
        "nobody to share with; start it with mpirun -n {} (docs/ranks.md)",
        config.shards.parameters, config.shards.gradients, config.shards.state,
        triple.state.size());
  }
  if (is_sharded && config.shards.mesh == "auto" && config.shards.node_ranks == 0) {
    return make_error(ErrorCode::config,
                      "the launcher has not put as many ranks on each machine, one machine after "
                      "the other; say with mesh=4x2 how many ranks a node has, and how many nodes "
                      "there are");
  }
  const std::int64_t group_elements =
      is_sharded && config.offload.state_format.is_split() ? kGroupElements : 1;
  return shard::plan_share(layout, triple, mesh, config.shards.rank,
                           config.offload.subgroup_elements, group_elements);
}

Status check_sharded(const shard::RankShare& share, const settings::RunConfig& config) {
  if (!share.is_sharded()) return ok_status();
  if (config.offload.overlap == offload::Overlap::local) {
    return make_error(ErrorCode::config,
                      "overlap=local goes with ranks that each have all of the state: a subgroup's "
                      "norm is that of its own gradients, and here its subgroups depend on the "
                      "sharding; set overlap=exact or off");
  }
  if (share.is_gathered() && config.offload.state_format.kind == StateFormatKind::compact) {
    return make_error(ErrorCode::config,
                      "state_format=compact goes with ranks that each have all of the parameters: "
                      "its groups of {} elements would be others with each number of ranks; leave "
                      "shard_parameters out, or set state_format=exact",
                      kGroupElements);
  }
  if (config.offload.parameters == offload::ParameterTier::storage) {
    return make_error(
        ErrorCode::config,
        "parameter_tier=storage goes with ranks that each have all of the state: the "
        "drives of a rank have the parameters that it updates; shard_parameters saves "
        "the memory here");
  }
  return ok_status();
}

Result<shard::Overlaps> shard_overlaps(const settings::RunConfig& config) {
  const std::string& text = config.shards.overlap;
  if (text == "all") return shard::Overlaps::all();
  if (text == "none") return shard::Overlaps::none();
  shard::Overlaps overlaps = shard::Overlaps::none();
  // An empty text is one empty word; std::views::split would make it none.
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t comma = std::min(text.find(',', first), text.size());
    const std::string_view word = std::string_view(text).substr(first, comma - first);
    first = comma + 1;
    const std::optional<shard::Overlap> overlap = shard::overlap_named(word);
    if (!overlap || overlap == shard::Overlap::keep_gathered) {
      // keep_gathered is no choice: a layer is computed anew within its backward.
      std::vector<std::string> names(shard::kOverlapNames.begin(), shard::kOverlapNames.end());
      std::erase(names, "keep_gathered");
      return make_error(ErrorCode::config,
                        "shard_overlap={}: '{}' is none{}; there are all, none, or some of {}",
                        text, word, did_you_mean(word, names), fmt::join(names, ", "));
    }
    overlaps = overlaps.with(*overlap);
  }
  return overlaps;
}

}  // namespace sluice::plan
