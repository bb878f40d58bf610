#pragma once
// Transfers between host memory and the accelerators, and among these
// (Platform::accelerator_routes).
//
// Several share each layer evenly, as ZeRO-3 has it: each brings one part from host memory and the
// others from its peers, over its own link; gradients are summed among them, which takes the same
// exchange, and leave in parts. What an accelerator sends to its peers goes against what it
// receives, so it takes no time of its own. Where one device computes in the place of several (the
// emulated clock), all parts go to that one.
//
// Thread contract: the schedule's thread.

#include "core/train/device_work.h"
#include "core/train/step_context.h"

namespace sluice::train {

// Whether the others of several accelerators need, or have, all of what one moves a part of.
enum class AmongPeers : std::uint8_t { nothing, all };

// A move as a whole; the work of a device is that of each part.
struct Move {
  stages::Stage stage;
  platform::Direction direction;
  LayerId layer = kNoLayer;
  std::int64_t size_bytes = 0;
  AmongPeers among_peers = AmongPeers::nothing;
  DeviceWork work = {};
};

class AcceleratorMoves {
 public:
  explicit AcceleratorMoves(const StepContext& context) : context_(context) {}

  // Forward and backward run in host memory.
  bool moves_nothing() const { return context_.platform.accelerator_routes.empty(); }
  // In a part for each accelerator.
  runtime::Task<Status> in_parts(Move whole) const;
  // By one accelerator.
  runtime::Operation by_one(const Move& whole) const;
  // Each accelerator gets the others' parts of a layer.
  runtime::Task<Status> among_peers(LayerId layer, std::int64_t size_bytes) const;

 private:
  std::size_t accelerator_count() const { return context_.platform.accelerator_routes.size(); }
  model::BytePart part_of(std::int64_t size_bytes, std::size_t accelerator) const;
  runtime::Operation operation_of(stages::Stage stage, platform::Direction direction, LayerId layer,
                                  std::size_t accelerator, std::int64_t size_bytes) const;
  runtime::Operation from_peers(LayerId layer, std::size_t accelerator,
                                std::int64_t size_bytes) const;

  const StepContext& context_;
};

}  // namespace sluice::train
