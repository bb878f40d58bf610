#include "core/simulate/sharding_choice.h"

#include <fmt/format.h>

#include "base/shell_quoted.h"
#include "core/plan/rank_share.h"
#include "core/plan/run_plan.h"
#include "core/platform/cluster_mesh.h"
#include "core/simulate/drive_rank.h"
#include "core/simulate/simulated_plan.h"
#include "core/weights/model_folder.h"

namespace sluice::simulate {
namespace {

std::int64_t memory_cap_bytes(const settings::RunConfig& config,
                              const platform::Platform& platform) {
  const settings::ResourceConfig& resources = config.resources;
  const bool is_on_host =
      plan::with_needed_accelerator(platform, config).accelerator_routes.empty();
  const std::int64_t asked_bytes =
      is_on_host ? resources.host_memory_bytes : resources.accelerator_memory_bytes;
  return asked_bytes > 0 ? asked_bytes : platform.cluster->memory_bytes;
}

}  // namespace

Result<settings::RunConfig> with_sharding(const settings::RunConfig& config,
                                          const model::ModelShape& shape,
                                          const platform::Platform& platform) {
  if (!plan::is_sharding_open(config)) return config;
  ASSIGN_OR_RETURN(const platform::Scope mesh, plan::mesh_of(config));
  if (!platform.cluster) {
    return make_error(
        ErrorCode::config,
        "shard_state=auto: {} has no [cluster]; mpirun -n {} sluice calibrate --ranks "
        "-o {} measures it, or name the scopes",
        platform.source, mesh.size(), shell_quoted(platform.source));
  }
  settings::RunConfig of_first = config;
  of_first.shards.rank = 0;
  const DriveRank drives(of_first);
  SimulatedPlanRequest request;
  request.run.shape = shape;
  request.run.shape.stacks.spans = {config.objective.span_share, config.objective.span_length};
  request.run.platform = platform;
  ASSIGN_OR_RETURN(request.run.platform.cluster, platform::with_mesh(*platform.cluster, mesh));
  request.run.batch = config.batch.batch;
  request.run.sequence = config.batch.sequence;
  request.run.micro_batches = config.batch.grad_accum_steps;
  ASSIGN_OR_RETURN(request.run.overlaps, plan::shard_overlaps(config));
  request.activations = {config.arithmetic.activations};
  request.state_tiers = {StateTier::drives};
  request.drives = &drives;
  request.compared_triples = 0;
  request.memory_cap_bytes = memory_cap_bytes(config, platform);
  const auto plan = plan_by_simulation(request);
  if (!plan.ok()) return plan.error().with_context("shard_state=auto");
  settings::RunConfig chosen = config;
  const shard::Triple& triple = plan->best.triple;
  chosen.shards.parameters = platform::scope_text(triple.parameters);
  chosen.shards.gradients = platform::scope_text(triple.gradients);
  chosen.shards.state = platform::scope_text(triple.state);
  return chosen;
}

Result<settings::RunConfig> with_sharding(const settings::RunConfig& config) {
  if (!plan::is_sharding_open(config)) return config;
  ASSIGN_OR_RETURN(const model::ModelShape shape, weights::load_shape(config.files.model));
  ASSIGN_OR_RETURN(const platform::Platform platform,
                   platform::load_platform(config.files.platform));
  return with_sharding(config, shape, platform);
}

}  // namespace sluice::simulate
