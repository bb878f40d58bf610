#include "core/simulate/memory_rank.h"

#include <memory>

#include "core/runtime/clocks.h"
#include "core/shard/activation_memory.h"
#include "core/simulate/rank_step.h"
#include "core/simulate/rank_times.h"

namespace sluice::simulate {
namespace {

// A step waits for the broadcasts of the one before, and the first has none before it.
constexpr int kWarmUps = 1;

// Its matrices, or the rows that it has of one, the first with the layer's vectors; all of it where
// it has no matrix.
std::vector<std::int64_t> layer_modules(const model::FlatLayout& layout, LayerId layer) {
  std::vector<std::int64_t> modules;
  std::int64_t in_vectors = 0;
  for (const model::TensorInfo& tensor : layout.tensors) {
    const std::int64_t count = elements_within(tensor, layout.layer(layer));
    if (count == 0) continue;
    if (tensor.shape.size() < 2) {
      in_vectors += count;
    } else {
      modules.push_back(count);
    }
  }
  if (modules.empty()) modules.push_back(0);
  modules.front() += in_vectors;
  return modules;
}

bool is_any_recomputed(const ShardedRun& run) {
  const std::int32_t layer_count = run.shape.flat_layout().layer_count();
  for (std::int32_t l = 0; l < layer_count; ++l) {
    if (model::is_recomputed(run.activations.of(LayerId{l}))) return true;
  }
  return false;
}

}  // namespace

shard::RankMemory run_memory(const ShardedRun& run) {
  return shard::rank_memory(step_shape(run), run.triple,
                            shard::kept_activation_bytes(run.shape, run.precision, run.batch,
                                                         run.sequence, run.activations));
}

shard::StepShape step_shape(const ShardedRun& run) {
  shard::StepShape step;
  const model::FlatLayout layout = run.shape.flat_layout();
  for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
    const std::vector<std::int64_t> modules = layer_modules(layout, LayerId{l});
    step.layer_modules.push_back(static_cast<std::int32_t>(modules.size()));
    step.module_elements.insert(step.module_elements.end(), modules.begin(), modules.end());
  }
  step.micro_batches = run.micro_batches;
  step.gathers = gathers_of(is_any_recomputed(run), run.overlaps);
  step.precision = run.precision;
  step.bucket_bytes = run.bucket_bytes;
  return step;
}

std::vector<plan::LayerCost> layer_costs(const ShardedRun& run) {
  return plan::layer_costs(run.platform, run.shape, {run.batch, run.sequence, run.activations});
}

Result<ShardedStep> memory_rank_step(const platform::Platform& platform,
                                     const shard::StepShape& step,
                                     std::span<const plan::LayerCost> costs,
                                     const shard::Triple& triple, const shard::Overlaps& overlaps) {
  const RankMachine machine(platform, step, triple);
  runtime::Runtime runtime(
      std::make_unique<runtime::SimulatedClock>(machine.platform(), runtime::Disturbance{}));
  SimulatedRank operations(runtime, machine, costs);
  RankStep rank(runtime, operations, plan_rank(step, triple, platform.cluster->mesh), overlaps);
  for (int i = 0; i < kWarmUps; ++i) RETURN_IF_ERROR(runtime.run(rank.step()));
  RankTimes taken;
  runtime.add_sink(&taken);
  const TimeNs start_ns = runtime.now_ns();
  RETURN_IF_ERROR(runtime.run(rank.step()));
  SimulatedStep shown;
  shown.steps.push_back({start_ns, runtime.now_ns()});
  shown.total_seconds = static_cast<double>(runtime.now_ns() - start_ns) / 1e9;
  RETURN_IF_ERROR(runtime.run(rank.settle()));
  return taken.mean_step(shown);
}

Result<ShardedStep> memory_rank_step(const ShardedRun& run) {
  RETURN_IF_ERROR(check_sharded(run));
  return memory_rank_step(run.platform, step_shape(run), layer_costs(run), run.triple,
                          run.overlaps);
}

}  // namespace sluice::simulate
