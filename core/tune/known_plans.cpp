#include "core/tune/known_plans.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "core/plan/run_plan.h"
#include "core/tune/layer_problem.h"
#include "core/tune/lower_bound.h"

namespace sluice::tune {
namespace {

using model::Activations;

bool may(const LayerWorth& layer, Activations choice) {
  return std::ranges::find(layer.allowed, choice) != layer.allowed.end();
}

}  // namespace

LayerChoices adaptive_cut(const std::vector<LayerWorth>& layers,
                          const std::vector<double>& forward_seconds, double bytes_per_s) {
  CHECK_EQ(layers.size(), forward_seconds.size());
  const double forward = std::accumulate(forward_seconds.begin(), forward_seconds.end(), 0.0);
  LayerChoices choices(layers.size(), Activations::keep);
  double left_bytes = 0;
  double before_seconds = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto bytes = static_cast<double>(layers[l].moved_with(Activations::offload));
    if (may(layers[l], Activations::offload)) {
      const double seconds = 3 * forward - 2 * before_seconds;
      if (left_bytes + 2 * bytes > bytes_per_s * seconds) break;
      choices[l] = Activations::offload;
      left_bytes += bytes;
    }
    before_seconds += forward_seconds[l];
  }
  return choices;
}

std::vector<std::size_t> swap_order(const std::vector<LayerWorth>& layers) {
  std::vector<std::size_t> order;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (may(layers[l], Activations::offload)) order.push_back(l);
  }
  // By what leaves, of which the costs are counted.
  const auto benefit = [&layers](std::size_t l) {
    const double again =
        layers[l].compute_with(Activations::recompute) - layers[l].compute_with(Activations::keep);
    const auto bytes = static_cast<double>(layers[l].moved_with(Activations::offload));
    return bytes > 0 ? again / bytes : 0;
  };
  std::ranges::stable_sort(order, std::greater<>(), benefit);
  return order;
}

std::vector<double> swapped_seconds(const std::vector<LayerWorth>& layers, const SwapCosts& costs) {
  const std::vector<std::size_t> order = swap_order(layers);
  double again_seconds = 0;
  for (const std::size_t l : order) {
    again_seconds +=
        layers[l].compute_with(Activations::recompute) - layers[l].compute_with(Activations::keep);
  }
  double moved_bytes = 0;
  std::vector<double> seconds;
  for (std::size_t count = 0; count <= order.size(); ++count) {
    if (count > 0) {
      const LayerWorth& layer = layers[order[count - 1]];
      moved_bytes += static_cast<double>(layer.moved_with(Activations::offload));
      again_seconds -=
          layer.compute_with(Activations::recompute) - layer.compute_with(Activations::keep);
    }
    seconds.push_back(
        std::max(costs.forward_seconds,
                 costs.forward_link_seconds + moved_bytes * costs.out_seconds_per_byte) +
        std::max(costs.backward_seconds + again_seconds,
                 costs.backward_link_seconds + moved_bytes * costs.back_seconds_per_byte));
  }
  return seconds;
}

LayerChoices swapped_amount(const std::vector<LayerWorth>& layers, const SwapCosts& costs) {
  const std::vector<std::size_t> order = swap_order(layers);
  const std::vector<double> seconds = swapped_seconds(layers, costs);
  const auto count = static_cast<std::size_t>(std::ranges::min_element(seconds) - seconds.begin());
  LayerChoices choices(layers.size(), Activations::keep);
  for (std::size_t place = 0; place < order.size(); ++place) {
    choices[order[place]] = place < count ? Activations::offload : Activations::recompute;
  }
  return choices;
}

SwapCosts swap_costs(const plan::RunPlan& kept, const LayerProblem& problem) {
  SwapCosts costs;
  for (const double seconds : forward_seconds(kept)) costs.forward_seconds += seconds;
  for (const LayerWorth& layer : problem.layers) {
    costs.backward_seconds += layer.compute_with(Activations::keep);
  }
  costs.backward_seconds -= costs.forward_seconds;
  // The busiest of all does most of its work after forward, where state and gradients move.
  for (const StepLoad& load : problem.loads) {
    costs.backward_link_seconds = std::max(costs.backward_link_seconds, load.base_seconds);
  }
  costs.out_seconds_per_byte = moved_byte_seconds(kept, platform::Direction::write);
  costs.back_seconds_per_byte = moved_byte_seconds(kept, platform::Direction::read);
  return costs;
}

double moving_rate(const plan::RunPlan& run) {
  return 1 / std::max(moved_byte_seconds(run, platform::Direction::write),
                      moved_byte_seconds(run, platform::Direction::read));
}

}  // namespace sluice::tune
