#pragma once
// The context that every step of a run works with.
//
// Thread contract: the schedule's thread.

#include <vector>

#include "core/model/flat_layout.h"
#include "core/plan/layer_cost.h"
#include "core/runtime/sync.h"
#include "core/session/speculation_policy.h"

namespace sluice::activation {
class ActivationCarrier;
}
namespace sluice::model {
class ComputeDevice;
struct FlatLayout;
class TrainableModel;
}  // namespace sluice::model
namespace sluice::offload {
class Offload;
class ParameterSource;
}  // namespace sluice::offload

namespace sluice::train {

class Ranks;
class ShardTraffic;

struct StepContext {
  runtime::Runtime& runtime;
  const platform::Platform& platform;
  offload::Offload& offload;
  model::TrainableModel* model = nullptr;  // null: no payload
  const model::FlatLayout& layout;
  const std::vector<plan::LayerCost>& layer_costs;
  std::int64_t micro_batch_bytes;  // model::batch_bytes()
  std::int64_t loss_bytes;         // model::loss_bytes()
  // Where the model computes, if that is a device with memory of its own: its work is what the
  // operations do then. An operation that it has not ended after `device_patience_ns` ends the run.
  model::ComputeDevice* device = nullptr;
  TimeNs device_patience_ns = 0;
  // Null: what layers keep stays in memory.
  activation::ActivationCarrier* activations = nullptr;
  // Null: this is the only rank.
  Ranks* ranks = nullptr;
  // Null: each rank has all of the model and of its state.
  ShardTraffic* shards = nullptr;
  // overlap=exact: whether the next step is updated ahead of its decision.
  session::SpeculationPolicy speculation = session::SpeculationPolicy();
  // The layers' gradients leave the accelerators one after the other.
  runtime::Pool gradient_turn{runtime, 1};

  // Where the layers' parameters come from: the ranks that have parts of them, or the offload.
  offload::ParameterSource& parameters() const;
};

}  // namespace sluice::train
