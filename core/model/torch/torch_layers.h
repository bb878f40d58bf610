#pragma once
// The interface that a model in libtorch offers to the device that it computes on, beside
// TrainableModel: its layers' parameters lie where they are bound, and its layers are launched onto
// the calling thread's current stream, which is not waited for. Every architecture is one.
//
// Thread contract: bind() before anything is launched; launch_*() from the device's launching
// thread, the rest as TrainableModel. libtorch's exceptions go through: the device's border is
// around.

#include <ATen/core/Tensor.h>

#include "base/ids.h"
#include "core/model/flat_layout.h"

namespace sluice::model {

class SavedBlocks;

class TorchLayers {
 public:
  virtual ~TorchLayers() = default;

  // The layer's parameters, flat, on the device that computes.
  virtual void bind(LayerId layer, const at::Tensor& flat) = 0;
  // Where a base comes by layer (ModelOptions): its layout, which is empty where none does, and the
  // layer's of it, bound likewise.
  virtual FlatLayout base_layout() const = 0;
  virtual void bind_base(LayerId layer, const at::Tensor& flat) = 0;
  virtual void launch_forward(LayerId layer, int micro_step) = 0;
  // `into`: all of the layer's gradients, flat; written with 16 bits, added with fp32.
  virtual void launch_backward(LayerId layer, int micro_step, double gradient_scale,
                               const at::Tensor& into) = 0;

  // A micro-batch's numbers where set_batch() puts them, and where the layers read them; the same
  // in host memory.
  struct NumbersPlaces {
    at::Tensor in_host_memory;
    at::Tensor on_device;
  };
  virtual const NumbersPlaces& numbers_places(int micro_step) const = 0;
  // One fp64 value, there once the last layer has gone forward; and what has come of it.
  virtual const at::Tensor& loss_sum(int micro_step) const = 0;
  virtual const at::Tensor& loss_sum_in_host_memory(int micro_step) const = 0;
  // The tensors that the layer keeps of a micro-batch and that may leave the device.
  virtual SavedBlocks& saved_blocks(LayerId layer, int micro_step) = 0;
};

}  // namespace sluice::model
