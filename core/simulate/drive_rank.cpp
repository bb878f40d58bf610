#include "core/simulate/drive_rank.h"

#include <algorithm>
#include <numeric>

#include "core/model/architecture.h"
#include "core/model/kept_bytes.h"
#include "core/model/layer_places.h"
#include "core/offload/base_cut.h"
#include "core/offload/offload_memory.h"
#include "core/plan/memory_plan.h"
#include "core/plan/run_plan.h"
#include "core/simulate/drive_rank_bound.h"
#include "core/simulate/rank_part.h"
#include "core/simulate/rank_times.h"

namespace sluice::simulate {
namespace {

// The setting shard_overlap. keep_gathered is no choice in it (plan::shard_overlaps).
std::string overlap_words(const shard::Overlaps& overlaps) {
  std::string words;
  for (std::size_t i = 0; i < shard::kOverlapCount; ++i) {
    const auto overlap = static_cast<shard::Overlap>(i);
    if (overlap == shard::Overlap::keep_gathered || !overlaps.has(overlap)) continue;
    words += (words.empty() ? "" : ",") + std::string(shard::kOverlapNames[i]);
  }
  return words.empty() ? "none" : words;
}

struct LayerBytes {
  std::int64_t all = 0;     // what its backward needs, the head's logits too
  std::int64_t input = 0;   // where it is computed anew
  std::int64_t logits = 0;  // which stay in memory, unless the head is computed anew
};

LayerBytes layer_bytes(const plan::RunPlan& plan, LayerId layer) {
  const settings::BatchConfig& batch = plan.config.batch;
  const auto bytes_as = [&](model::Activations as_if) {
    const auto blocks = model::kept_block_bytes(plan.shape, layer, batch.batch, batch.sequence,
                                                as_if, plan.config.arithmetic.precision);
    return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
  };
  LayerBytes bytes{.all = bytes_as(model::Activations::offload),
                   .input = bytes_as(model::Activations::offload_inputs)};
  bytes.logits = layer_tokens(plan.shape, layer, batch.batch, batch.sequence).own *
                 logit_count(plan.shape, layer) * bytes_of(plan.config.arithmetic.precision);
  bytes.all += bytes.logits;
  return bytes;
}

// All micro-batches go through a layer before the next one, so what stays, stays of each. The
// widest layer that has its own in memory only while it is computed comes on top, and what is on
// its way to the drives and back.
std::int64_t activation_bytes(const plan::RunPlan& plan) {
  const settings::BatchConfig& batch = plan.config.batch;
  std::int64_t kept_bytes =
      batch.batch * batch.sequence *
      needed_bytes(model::architecture_of(plan.shape).embedding.made(plan.shape),
                   plan.config.arithmetic.precision);
  std::int64_t widest_bytes = 0;
  for (const LayerId layer : all_ids<LayerId>(plan.layout.layer_count())) {
    const LayerBytes bytes = layer_bytes(plan, layer);
    const model::Activations choice = plan.config.arithmetic.activations.of(layer);
    if (choice == model::Activations::keep) kept_bytes += bytes.all;
    if (choice == model::Activations::keep) continue;
    if (choice == model::Activations::recompute) kept_bytes += bytes.input;
    if (choice == model::Activations::offload) kept_bytes += bytes.logits;
    widest_bytes = std::max(widest_bytes, bytes.all);
  }
  const std::int64_t on_their_way =
      std::min(plan.activations.buffer_bytes, plan.activations.step_bytes());
  return plan.activations.micro_step_count * kept_bytes + widest_bytes + on_their_way;
}

// The tables, and two layers at a time.
std::int64_t elements_at_a_time(const model::FlatLayout& layout) {
  return layout.staying_elements() + 2 * layout.largest_passing();
}

// An accelerator has all of a base, or as much of it as of what is trained.
std::int64_t base_elements(const plan::RunPlan& plan) {
  if (plan.base) return elements_at_a_time(plan.base->layout);
  return plan.shape.has_adapters() ? plan.shape.base_layout().parameter_count : 0;
}

// What an accelerator behind a link does not have is in host memory, whose cap the simulation
// checks.
void put_parameters_on_accelerator(const plan::RunPlan& plan, shard::RankMemory& memory) {
  memory.parameter_bytes = bytes_of(plan.options.parameter_kind) *
                           (elements_at_a_time(plan.layout) + base_elements(plan));
  memory.gradient_bytes =
      2 * plan.layout.largest_layer_elements() * optimizer::bytes_of(plan.options.gradient_kind);
}

void put_all_in_one_memory(const plan::RunPlan& plan, shard::RankMemory& memory) {
  for (const MemoryItem& item : plan::parameter_items(plan)) {
    memory.parameter_bytes += item.size_bytes;
  }
  const offload::OffloadMemoryPlan offload =
      offload::plan_offload_memory(plan.options, plan.geometry, plan.share.state);
  memory.gradient_bytes = offload.layer_gradient_bytes + offload.gradient_store_bytes;
  memory.buffer_bytes = offload.host_bytes() - memory.gradient_bytes;
}

shard::RankMemory memory_of(const plan::RunPlan& plan) {
  shard::RankMemory memory;
  memory.activation_bytes = activation_bytes(plan);
  memory.drive_bytes = plan.geometry.state_bytes();
  if (plan.platform.accelerator_routes.empty()) {
    put_all_in_one_memory(plan, memory);
  } else {
    put_parameters_on_accelerator(plan, memory);
  }
  return memory;
}

}  // namespace

Result<plan::RunPlan> DriveRank::plan(const ShardedRun& run) const {
  settings::RunConfig config = config_;
  if (config.offload.gradient_work == offload::GradientWork::accelerator) {
    return make_error(ErrorCode::config,
                      "gradient_work=accelerator goes with one rank only: the gradients of several "
                      "are added up in host memory");
  }
  const platform::Scope& mesh = run.platform.cluster->mesh;
  config.batch.batch = run.batch;
  config.batch.sequence = run.sequence;
  config.batch.grad_accum_steps = run.micro_batches;
  config.batch.rank_count = mesh.size();
  config.arithmetic.activations = run.activations;
  config.shards.mesh = platform::scope_text(mesh);
  config.shards.parameters = platform::scope_text(run.triple.parameters);
  config.shards.gradients = platform::scope_text(run.triple.gradients);
  config.shards.state = platform::scope_text(run.triple.state);
  config.shards.overlap = overlap_words(run.overlaps);
  return plan::plan_run(config, run.shape, run.platform);
}

Result<DriveChoice> DriveRank::choice(const ShardedRun& run) const {
  ASSIGN_OR_RETURN(const plan::RunPlan planned, plan(run));
  DriveChoice choice = drive_rank_bound(planned);
  choice.memory = memory_of(planned);
  return choice;
}

Result<ShardedStep> DriveRank::step(const ShardedRun& run) const {
  ASSIGN_OR_RETURN(plan::RunPlan planned, plan(run));
  RankTimes times;
  if (planned.config.batch.rank_count == 1) {
    ASSIGN_OR_RETURN(const SimulatedStep alone, simulate_step(planned, nullptr, &times));
    return times.mean_step(alone);
  }
  ASSIGN_OR_RETURN(const RankPart part, RankPart::take(planned));
  ASSIGN_OR_RETURN(const SimulatedStep step, simulate_rank(planned, part, nullptr, &times));
  return times.mean_step(step);
}

}  // namespace sluice::simulate
