#include "core/simulate/sharded_run.h"

namespace sluice::simulate {

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
  return shard::check_triple(run.triple, run.platform.cluster->mesh);
}

}  // namespace sluice::simulate
