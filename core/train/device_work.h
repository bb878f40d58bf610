#pragma once
// The calls of a compute device (core/model/compute_device.h) as the work of an operation: it is
// handed over, and its end is noted.
//
// Thread contract: the schedule's thread.

#include <cstddef>

#include "core/model/gradient_device.h"
#include "core/model/trainable_model.h"
#include "core/runtime/operation.h"
#include "core/train/step_context.h"

namespace sluice::train {

// One call of a ComputeDevice; what a kind does not need stays as it is.
struct DeviceWork {
  enum class Kind : std::uint8_t {
    batch_in,
    layer_in,
    forward,
    backward,
    gradient_out,
    loss_out,
    check_gradient,  // from here on: core/model/gradient_device.h
    sums_out,
    select_gradient,
    kept_out,
    put_back,
    residual_out,
    residual_in,
  };
  Kind kind = Kind::forward;
  std::int8_t gradient = 0;  // number of the device's memory of gradients
  LayerId layer = kNoLayer;
  std::int32_t micro_step = 0;
  std::int32_t segment = 0;
  double gradient_scale = 1;
  model::BytePart part = {};
  std::byte* host = nullptr;     // where it goes to or comes from; of what is kept, the indices
  float* kept_values = nullptr;  // the values

  model::KeptPlace kept() const { return {reinterpret_cast<std::uint32_t*>(host), kept_values}; }
  void set_kept(const model::KeptPlace& place) {
    host = reinterpret_cast<std::byte*>(place.indices);
    kept_values = place.values;
  }
};

// Without a device in the context the operation stays as it is.
void set_device_work(const StepContext& context, runtime::Operation& operation,
                     const DeviceWork& work);

std::byte* data_of(const model::LayerGradient& gradient);

}  // namespace sluice::train
