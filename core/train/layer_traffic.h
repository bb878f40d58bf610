#pragma once
// What goes between host memory and whoever computes, in one pass over the layers: each layer's
// 16-bit parameters before its forward and again before its backward, a layer ahead of it, and its
// gradients after its backward. Where forward and backward run in host memory nothing moves, and a
// layer's parameters are there as soon as they are up.
//
// Several accelerators (Platform::accelerator_routes) share each layer evenly, as ZeRO-3 has it:
// each brings one part from host memory and the others from its peers, over its own link; gradients
// are summed among them, which takes the same exchange, and leave in parts. What an accelerator
// sends to its peers goes against what it receives, so it takes no time of its own.
//
// Thread contract: the schedule's thread.

#include "core/train/training_step.h"

namespace sluice::train {

class LayerTraffic {
 public:
  enum class Pass : std::uint8_t { forward, backward };
  LayerTraffic(StepContext& context, Pass pass);

  // The pass's next layer may be computed with; the one after it is on its way. Once a layer.
  runtime::Task<Status> next_layer();
  // Has the layer's gradients brought to host memory and sent on, in the order of the calls.
  void send_gradient(LayerId layer, runtime::Pool::Lease lease);
  // Waits for all that is under way; to be awaited before this object goes, also after a failure.
  runtime::Task<Status> finish();

 private:
  runtime::Task<Status> bring(LayerId layer);
  runtime::Task<Status> take_gradient(LayerId layer, runtime::Pool::Lease lease);
  // Moves `size_bytes` between host memory and the accelerators.
  runtime::Task<Status> move(runtime::Stage stage, platform::Direction direction, LayerId layer,
                             std::int64_t size_bytes);
  runtime::Operation part(runtime::Stage stage, platform::Direction direction, LayerId layer,
                          std::size_t accelerator, std::int64_t part_bytes) const;

  StepContext& context_;
  std::int32_t step_;  // to the layer after: 1 or -1
  std::int32_t next_;  // layer
  runtime::TaskGroup coming_;
  runtime::TaskGroup leaving_;
};

}  // namespace sluice::train
