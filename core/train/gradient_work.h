#pragma once
// A layer's gradients on their way out of the accelerators. With gradient_work=host all of them
// come. With gradient_work=accelerator they are checked there, their largest elements are selected
// there (density below 1), and what is sent comes.
//
// Thread contract: the schedule's thread.

#include "core/train/accelerator_moves.h"

namespace sluice::train {

class GradientWork {
 public:
  explicit GradientWork(const StepContext& context) : context_(context), moves_(context) {}

  // Until what is sent of the layer lies in host memory. One layer after the other.
  runtime::Task<Status> take(LayerId layer, const runtime::Pool::Lease& lease) const;
  // The step is skipped: what its layers had kept goes back into the accelerator's residual.
  runtime::Task<Status> put_back() const;

 private:
  runtime::Task<Status> take_all(LayerId layer, const runtime::Pool::Lease& lease,
                                 AmongPeers among_peers) const;
  runtime::Task<Status> check(LayerId layer, std::int8_t gradient) const;
  runtime::Task<Status> take_largest(LayerId layer, std::int8_t gradient) const;
  runtime::Operation kernel(runtime::Stage stage, const char* rate, std::int64_t elements,
                            const DeviceWork& work) const;
  // What is kept of a layer, on its way out or back.
  Move kept_move(runtime::Stage stage, platform::Direction direction, DeviceWork::Kind kind,
                 LayerId layer) const;
  std::int64_t gradient_bytes(LayerId layer) const;

  const StepContext& context_;
  AcceleratorMoves moves_;
};

// The residual of the whole model between an accelerator and the host, whole or from an element on
// (core/offload/residual_file.h has it in pieces). Between steps.
runtime::Task<Status> bring_residual(const StepContext& context, platform::Direction direction,
                                     model::BytePart part, std::byte* residual);

}  // namespace sluice::train
