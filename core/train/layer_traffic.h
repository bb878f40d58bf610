#pragma once
// The bytes that go between host memory and whoever computes, in one pass over the layers: a step's
// tokens before the first, each layer's parameters before its forward and again before its
// backward, a layer ahead of it, the loss beside backward. Its gradients leave by themselves
// (gradient_work.h).
// Where forward and backward run in host memory nothing crosses, and a layer's parameters are there
// as soon as they are up. With parameter_tier=storage they come from the drives before that
// (core/offload/parameter_carrier.h).
//
// How several accelerators share a layer is on the page of accelerator_moves.h.
//
// Thread contract: the schedule's thread.

#include "core/offload/parameter_source.h"
#include "core/train/accelerator_moves.h"

namespace sluice::train {

class LayerTraffic {
 public:
  using Pass = offload::Pass;
  // `micro_step_count`: whose tokens are brought with a pass forward.
  LayerTraffic(StepContext& context, Pass pass, int micro_step_count);

  // The pass's next layer may be computed with; the one after it is on its way. Once a layer.
  runtime::Task<Status> next_layer();
  // Brings the micro-batch's loss, which the last layer's forward has made.
  void send_loss(int micro_step);
  // Waits for all that is under way; to be awaited before this object goes, also after a failure.
  runtime::Task<Status> finish();

 private:
  runtime::Task<Status> bring(LayerId layer);
  bool are_parameters_copied() const;
  void end_computing();
  runtime::Task<Status> bring_batch(int micro_step);
  runtime::Task<Status> bring_loss(int micro_step);

  StepContext& context_;
  offload::ParameterSource& parameters_;
  AcceleratorMoves moves_;
  std::int32_t step_;             // to the layer after: 1 or -1
  std::int32_t next_;             // layer
  LayerId computing_ = kNoLayer;  // from host memory, which its parameters leave after that
  runtime::TaskGroup coming_;
  runtime::TaskGroup leaving_;
};

}  // namespace sluice::train
