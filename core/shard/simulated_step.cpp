#include "core/shard/simulated_step.h"

#include <memory>
#include <utility>

#include "core/model/flop.h"
#include "core/runtime/clocks.h"
#include "core/runtime/kernel_cost.h"
#include "core/shard/activation_memory.h"

namespace sluice::shard {
namespace {

// A step waits for the broadcasts of the one before, and the first has none before it.
constexpr int kWarmUps = 1;

// What happens between two calls of take().
class StageCounter final : public runtime::OperationSink {
 public:
  void on_submit(const runtime::OperationState& /*state*/) override {}
  void on_finish(const runtime::OperationState& state) override {
    StageUse& use = step_.stages[runtime::index_of(state.operation.label.stage)];
    const double seconds = static_cast<double>(state.end_ns - state.start_ns) / 1e9;
    use.count += 1;
    use.size_bytes += state.operation.label.size_bytes;
    use.seconds += seconds;
    if (!state.operation.cost.route.empty()) return;
    const bool is_of_layer = state.operation.label.layer != kNoLayer;
    (is_of_layer ? step_.compute_seconds : step_.update_seconds) += seconds;
  }
  ShardedStep take() { return std::exchange(step_, {}); }

 private:
  ShardedStep step_;
};

// Its matrices, the first with the layer's vectors; all of it where it has no matrix.
std::vector<std::int64_t> layer_modules(const model::FlatLayout& layout, LayerId layer) {
  std::vector<std::int64_t> modules;
  std::int64_t in_vectors = 0;
  for (const model::TensorInfo& tensor : layout.tensors) {
    if (tensor.layer != layer) continue;
    if (tensor.shape.size() < 2) {
      in_vectors += tensor.count;
    } else {
      modules.push_back(tensor.count);
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

bool leaves_memory(const model::ModelShape& shape, const model::LayerActivations& activations) {
  const std::int32_t layer_count = shape.flat_layout().layer_count();
  for (std::int32_t l = 0; l < layer_count; ++l) {
    if (model::is_offloaded(activations.of(LayerId{l}))) return true;
  }
  return false;
}

Status check_sharded(const ShardedRun& run) {
  if (!run.platform.cluster) {
    return make_error(ErrorCode::config, "{}: no [cluster], whose ranks a model is sharded over",
                      run.platform.source);
  }
  RETURN_IF_ERROR(run.shape.check_sequence(run.sequence));
  if (run.state_tier == StateTier::drives && run.platform.devices.empty()) {
    return make_error(ErrorCode::config, "{}: no [[device]], on which a rank's state could lie",
                      run.platform.source);
  }
  if (leaves_memory(run.shape, run.activations)) {
    return make_error(ErrorCode::config,
                      "activations={}: with the state in memory a layer keeps or recomputes; use "
                      "--state drives, on which activations lie, too",
                      run.activations.text());
  }
  return check_triple(run.triple, run.platform.cluster->mesh);
}

RankMemory run_memory(const ShardedRun& run) {
  return rank_memory(step_shape(run), run.triple, run.state_tier,
                     kept_activation_bytes(run.shape, run.batch, run.sequence, run.activations));
}

StepShape step_shape(const ShardedRun& run) {
  StepShape step;
  const model::FlatLayout layout = run.shape.flat_layout();
  for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
    const std::vector<std::int64_t> modules = layer_modules(layout, LayerId{l});
    step.layer_modules.push_back(static_cast<std::int32_t>(modules.size()));
    step.module_elements.insert(step.module_elements.end(), modules.begin(), modules.end());
  }
  step.micro_batches = run.micro_batches;
  step.gathers = gathers_of(is_any_recomputed(run), run.overlaps);
  step.bucket_bytes = run.bucket_bytes;
  return step;
}

LayerTimes layer_times(const ShardedRun& run) {
  const platform::EngineId id = run.platform.compute_engine;
  const platform::Engine& engine = run.platform.engine(id);
  const auto kernel_ns = [&](double flop, double elements) {
    return runtime::kernel_cost(id, engine, "matmul", flop).engine_dur_ns +
           runtime::kernel_cost(id, engine, "elementwise", elements).engine_dur_ns -
           engine.launch_ns;
  };
  LayerTimes times;
  const std::int32_t layers = run.shape.flat_layout().layer_count();
  for (std::int32_t l = 0; l < layers; ++l) {
    const LayerId layer{l};
    const model::Activations choice = run.activations.of(layer);
    times.forward_ns.push_back(
        kernel_ns(model::forward_flop(run.shape, layer, run.batch, run.sequence),
                  model::forward_elements(run.shape, layer, run.batch, run.sequence)));
    times.backward_ns.push_back(
        kernel_ns(model::backward_flop(run.shape, layer, run.batch, run.sequence, choice),
                  model::backward_elements(run.shape, layer, run.batch, run.sequence, choice)));
  }
  return times;
}

Result<ShardedStep> simulate_sharded(const platform::Platform& platform, const StepShape& step,
                                     const LayerTimes& times, const Triple& triple,
                                     const Overlaps& overlaps, StateTier state_tier) {
  const RankMachine machine(platform, step, triple, state_tier);
  runtime::Runtime runtime(
      std::make_unique<runtime::SimulatedClock>(machine.platform(), runtime::Disturbance{}));
  SimulatedRank operations(runtime, machine, times);
  RankStep rank(runtime, operations, plan_rank(step, triple, platform.cluster->mesh), overlaps);
  StageCounter counter;
  runtime.add_sink(&counter);
  ShardedStep taken;
  for (int i = 0; i <= kWarmUps; ++i) {
    const TimeNs begin_ns = runtime.now_ns();
    RETURN_IF_ERROR(runtime.run(rank.step()));
    taken = counter.take();
    taken.seconds = static_cast<double>(runtime.now_ns() - begin_ns) / 1e9;
  }
  RETURN_IF_ERROR(runtime.run(rank.settle()));
  return taken;
}

Result<ShardedStep> simulate_sharded(const ShardedRun& run) {
  RETURN_IF_ERROR(check_sharded(run));
  return simulate_sharded(run.platform, step_shape(run), layer_times(run), run.triple, run.overlaps,
                          run.state_tier);
}

}  // namespace sluice::shard
