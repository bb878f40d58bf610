#pragma once
// How long one layer takes for one micro-batch, on the platform's compute engine.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace sluice::platform {
struct Platform;
}
namespace sluice::model {
struct ModelShape;
class LayerActivations;
}  // namespace sluice::model

namespace sluice::plan {

struct LayerCost {
  TimeNs forward_ns = 0;
  TimeNs backward_ns = 0;
};

// The facts of a micro-batch that its costs depend on.
struct MicroBatch {
  std::int64_t batch = 1;  // sequences
  std::int64_t sequence = 0;
  const model::LayerActivations& activations;
};
// By layer.
std::vector<LayerCost> layer_costs(const platform::Platform& platform,
                                   const model::ModelShape& shape, const MicroBatch& micro_batch);

}  // namespace sluice::plan
