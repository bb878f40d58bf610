#pragma once
// The seam to a device with memory of its own, on which a model computes: what goes in and out of
// it, and what is computed there, each as work that is started here and ends elsewhere
// (docs/accelerator.md). A model that computes in host memory has none (BuiltModel::device).
//
// The device holds two layers' parameters, two layers' gradients, and what layers share all along;
// the caller's order keeps them apart. In a step of M micro-batches:
//   batch_in(m) for each, once its set_batch() was called;
//   upwards, layer_in(l), then forward(l, m) for each m; layer_in(l + 1) may begin before;
//   loss_out(m) after the head's forward;
//   downwards, layer_in(l), then backward(l, m) for each m, then gradient_out(l);
//   where a layer's blocks leave, blocks_out(l, m) after forward(l, m), and blocks_in(l, m) before
//   backward(l, m).
// Work that reads what other work writes is started once that other work has ended; work of
// different kinds is otherwise under way at the same time, each kind in the order it was started.
//
// Thread contract: every call from one thread, the schedule's; none of them blocks. `done` is
// called exactly once for work that was started, from a thread of the device, with how it ended; it
// must not block. An error that is returned means that nothing was started and `done` is not
// called.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/ids.h"
#include "base/memory_item.h"
#include "base/status.h"
#include "core/model/model_shape.h"

namespace sluice::model {

using WhenDone = std::function<void(Status)>;

// The bytes that a micro-batch of batch x sequence tokens takes into the device: four numbers of 64
// bits a token that is looked up, one a target, one a window, and one an input, or two of a
// classifier's (core/model/torch/batch_numbers.h).
inline std::int64_t batch_bytes(const ModelShape& shape, std::int64_t batch,
                                std::int64_t sequence) {
  const std::int64_t of_inputs = shape.classifies() ? 2 * sequence : sequence;
  return batch *
         (4 * shape.looked_up_sequence(sequence) + shape.target_sequence(sequence) + 1 +
          of_inputs) *
         8;
}
// Its loss out of it; of a classifier's, how many answers are right, too.
inline constexpr std::int64_t kLossBytes = 8;
inline std::int64_t loss_bytes(const ModelShape& shape) {
  return shape.classifies() ? 2 * kLossBytes : kLossBytes;
}

// A part of what lies in host memory as one piece.
struct BytePart {
  std::int64_t first_byte = 0;
  std::int64_t size_bytes = 0;
};

class GradientDevice;

class ComputeDevice {
 public:
  virtual ~ComputeDevice() = default;

  // "SOFTWARE ACCELERATOR soft:0": for the mode line.
  virtual std::string description() const = 0;

  // A part of what the micro-batch is: batch_bytes() of it.
  virtual Status batch_in(int micro_step, BytePart part, WhenDone done) = 0;
  // A part of the layer's parameters, behind which its base's are where that comes by layer
  // (ModelOptions::base_comes_by_layer).
  virtual Status layer_in(LayerId layer, BytePart part, WhenDone done) = 0;
  virtual Status forward(LayerId layer, int micro_step, WhenDone done) = 0;
  // `gradient` is the number of the memory, 0 or 1, that the gradient is put into, or added to
  // after the first micro-batch where they are fp32.
  virtual Status backward(LayerId layer, int micro_step, double gradient_scale, int gradient,
                          WhenDone done) = 0;
  // A part of the layer's gradients to the host's memory of the whole layer's.
  virtual Status gradient_out(LayerId layer, int gradient, BytePart part, std::byte* layer_gradient,
                              WhenDone done) = 0;
  // loss_bytes(). TrainableModel::loss() says it afterwards.
  virtual Status loss_out(int micro_step, WhenDone done) = 0;
  // A part of the blocks that the layer keeps (core/model/kept_blocks.h), one behind the other, to
  // the host's memory that KeptBlocks::kept() has shown, and from what make_room() has. The first
  // part that comes in takes the device's memory for all of them.
  virtual Status blocks_out(LayerId layer, int micro_step, BytePart part, WhenDone done) = 0;
  virtual Status blocks_in(LayerId layer, int micro_step, BytePart part, WhenDone done) = 0;

  // In use by tensors, now and at most so far.
  struct MemoryUse {
    std::int64_t now_bytes = 0;
    std::int64_t peak_bytes = 0;
    std::int64_t cap_bytes = 0;
  };
  virtual MemoryUse memory_use() const = 0;

  // Gradient work on the device (core/model/gradient_device.h).
  virtual GradientDevice& gradients() = 0;
};

}  // namespace sluice::model
