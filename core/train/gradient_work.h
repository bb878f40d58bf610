#pragma once
// The gradients of a backward, each layer's on its way from where it was computed to the offload,
// beside the backward of the next one: out of the accelerators, then added up over the ranks. With
// gradient_work=host all of them come. With gradient_work=accelerator they are checked there, their
// largest elements are selected there (density below 1), and what is sent comes.
//
// Thread contract: the schedule's thread.

#include "core/train/accelerator_moves.h"

namespace sluice::train {

class GradientWork {
 public:
  explicit GradientWork(StepContext& context)
      : context_(context), moves_(context), leaving_(context.runtime) {}

  // Has a layer's gradients leave, in the order of the calls.
  void send(LayerId layer, runtime::Pool::Lease lease) {
    leaving_.spawn(leave(layer, std::move(lease)));
  }
  // Where they are not to go beside what is computed next (shard_overlap): waits for them.
  runtime::Task<Status> sent();
  // Waits for all that are under way; to be awaited before this object goes, also after a failure.
  runtime::TaskGroup::Joiner finish() { return leaving_.join(); }

  // Until what is sent of the layer lies in host memory. One layer after the other.
  runtime::Task<Status> take(LayerId layer, const runtime::Pool::Lease& lease) const;
  // The step is skipped: what its layers had kept goes back into the accelerator's residual.
  runtime::Task<Status> put_back() const;

 private:
  runtime::Task<Status> leave(LayerId layer, runtime::Pool::Lease lease);
  runtime::Task<Status> add_up_over_ranks(LayerId layer, const runtime::Pool::Lease& lease);
  runtime::Task<Status> take_all(LayerId layer, const runtime::Pool::Lease& lease,
                                 AmongPeers among_peers) const;
  runtime::Task<Status> check(LayerId layer, std::int8_t gradient) const;
  runtime::Task<Status> take_largest(LayerId layer, std::int8_t gradient) const;
  runtime::Operation kernel(stages::Stage stage, const char* rate, std::int64_t elements,
                            const DeviceWork& work) const;
  // The move of a layer's kept elements, on their way out or back.
  Move kept_move(stages::Stage stage, platform::Direction direction, DeviceWork::Kind kind,
                 LayerId layer) const;
  std::int64_t gradient_bytes(LayerId layer) const;

  StepContext& context_;
  AcceleratorMoves moves_;
  runtime::TaskGroup leaving_;
};

// The residual of the whole model between an accelerator and the host, whole or from an element on
// (core/offload/residual_file.h has it in pieces). Between steps.
runtime::Task<Status> bring_residual(const StepContext& context, platform::Direction direction,
                                     model::BytePart part, std::byte* residual);

}  // namespace sluice::train
