#include "core/plan/layer_cost.h"

#include <algorithm>

#include "base/id_vector.h"
#include "core/model/activations.h"
#include "core/model/flop.h"
#include "core/model/model_shape.h"
#include "core/platform/platform.h"
#include "core/runtime/kernel_cost.h"

namespace sluice::plan {

std::vector<LayerCost> layer_costs(const platform::Platform& platform,
                                   const model::ModelShape& shape, const MicroBatch& micro_batch) {
  const platform::EngineId id = platform.compute_engine;
  const platform::Engine& engine = platform.engine(id);
  // One kernel with two parts; a platform without a rate for the second does not charge it.
  const auto kernel_ns = [&](double flop, double elements) {
    return std::min(runtime::kernel_cost(id, engine, "matmul", flop).engine_dur_ns +
                        runtime::kernel_cost(id, engine, "elementwise", elements).engine_dur_ns -
                        engine.launch_ns,
                    runtime::kLongestKernelNs);
  };
  const auto [batch, sequence, activations] = micro_batch;
  std::vector<LayerCost> costs;
  for (const LayerId layer : all_ids<LayerId>(shape.flat_layout().layer_count())) {
    const model::Activations choice = activations.of(layer);
    costs.push_back({kernel_ns(model::forward_flop(shape, layer, batch, sequence),
                               model::forward_elements(shape, layer, batch, sequence)),
                     kernel_ns(model::backward_flop(shape, layer, batch, sequence, choice),
                               model::backward_elements(shape, layer, batch, sequence, choice))});
  }
  return costs;
}

}  // namespace sluice::plan
