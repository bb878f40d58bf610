#include "core/tune/layer_problem.h"

#include <algorithm>
#include <map>

#include "core/plan/layer_cost.h"
#include "core/plan/run_plan.h"

namespace sluice::tune {
namespace {

using model::Activations;

std::vector<Activations> allowed_of(LayerId layer, std::int32_t layer_count) {
  if (index_of(layer) == 0) return {Activations::keep};  // it keeps nothing
  // The head's backward follows its forward: there is no time in which it could be away.
  if (index_of(layer) == layer_count - 1) return {Activations::keep, Activations::recompute};
  return {Activations::keep, Activations::recompute, Activations::offload,
          Activations::offload_inputs};
}

// A layer's share of the memory that activations live in: the difference that keeping it makes
// where all others are computed again, and its input, which stays then, too.
Status set_kept_bytes(const plan::RunPlan& base, const MemoryModel& memory, LayerProblem& problem) {
  const LayerChoices recomputed = all_layers(problem.layers, Activations::recompute);
  const auto peak_bytes = [&](const LayerChoices& choices) -> Result<std::int64_t> {
    ASSIGN_OR_RETURN(plan::RunPlan run, with_layers(base, choices));
    run.config.offload.state_cache_bytes = 0;
    run.options.state_cache_bytes = 0;
    return tier_memory(run, memory).activations().peak_bytes;
  };
  ASSIGN_OR_RETURN(const std::int64_t least_bytes, peak_bytes(recomputed));
  for (std::size_t l = 0; l < problem.layers.size(); ++l) {
    LayerWorth& layer = problem.layers[l];
    if (layer.allowed.size() == 1) continue;
    LayerChoices kept = recomputed;
    kept[l] = Activations::keep;
    ASSIGN_OR_RETURN(const std::int64_t bytes, peak_bytes(kept));
    layer.kept_bytes = std::max<std::int64_t>(0, bytes - least_bytes) +
                       layer.moved_with(Activations::offload_inputs);
  }
  return ok_status();
}

}  // namespace

Result<plan::RunPlan> with_layers(const plan::RunPlan& run, const LayerChoices& choices) {
  settings::RunConfig config = run.config;
  ASSIGN_OR_RETURN(config.arithmetic.activations,
                   model::LayerActivations::parse(setting_text(choices)));
  return plan::plan_run(config, run.shape, run.platform);
}

std::vector<LayerWorth> unknown_layers(std::int32_t layer_count) {
  std::vector<LayerWorth> layers;
  for (const LayerId layer : all_ids<LayerId>(layer_count)) {
    layers.emplace_back().allowed = allowed_of(layer, layer_count);
  }
  return layers;
}

LayerChoices all_layers(const std::vector<LayerWorth>& layers, Activations choice) {
  LayerChoices choices;
  for (const LayerWorth& layer : layers) {
    const bool may = std::ranges::find(layer.allowed, choice) != layer.allowed.end();
    const bool may_recompute = layer.allowed.size() > 1 && choice != Activations::keep;
    choices.push_back(may ? choice : may_recompute ? Activations::recompute : Activations::keep);
  }
  return choices;
}

// The embedding has whatever choice needs no word of its own.
std::string setting_text(LayerChoices choices) {
  std::map<Activations, int> run_counts;
  for (std::size_t l = 1; l < choices.size(); ++l) {
    if (l == 1 || choices[l] != choices[l - 1]) run_counts[choices[l]] += 1;
  }
  choices.front() =
      std::ranges::max_element(run_counts, {}, [](const auto& run) { return run.second; })->first;
  return layers_text(choices);
}

std::vector<double> forward_seconds(const plan::RunPlan& run) {
  std::vector<double> seconds;
  for (const plan::LayerCost& cost : run.layer_costs) {
    seconds.push_back(static_cast<double>(run.config.batch.grad_accum_steps) *
                      static_cast<double>(cost.forward_ns) / 1e9);
  }
  return seconds;
}

Result<LayerProblem> layer_problem(const plan::RunPlan& base, const MemoryModel& memory) {
  LayerProblem problem;
  const std::int32_t layer_count = base.layout.layer_count();
  problem.layers = unknown_layers(layer_count);
  const auto micro_steps = static_cast<double>(base.config.batch.grad_accum_steps);
  for (std::size_t c = 0; c < kChoiceCount; ++c) {
    const auto choice = static_cast<Activations>(c);
    ASSIGN_OR_RETURN(const plan::RunPlan run,
                     with_layers(base, all_layers(problem.layers, choice)));
    for (std::size_t l = 0; l < problem.layers.size(); ++l) {
      const plan::LayerCost& cost = run.layer_costs[l];
      problem.layers[l].compute_seconds[c] =
          micro_steps * static_cast<double>(cost.forward_ns + cost.backward_ns) / 1e9;
      problem.layers[l].moved_bytes[c] =
          run.activations.micro_step_count *
          run.activations.layer_bytes(LayerId{static_cast<std::int32_t>(l)});
    }
    // Bytes in the buffer when backward turns need not leave, nor need the widest layer's.
    std::int64_t widest_bytes = 0;
    for (const LayerId layer : all_ids<LayerId>(layer_count)) {
      widest_bytes = std::max(widest_bytes, run.activations.layer_bytes(layer));
    }
    problem.spare_bytes =
        std::max(problem.spare_bytes, run.activations.buffer_bytes + widest_bytes);
  }
  RETURN_IF_ERROR(set_kept_bytes(base, memory, problem));
  return problem;
}

}  // namespace sluice::tune
