#pragma once
// Gradient work in libtorch (core/model/gradient_device.h), beside the device that computes: its
// kernels run in the stream of what goes out, so that they do not hold up the backward of the layer
// below.
//
// Thread contract: as GradientDevice.

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <string>

#include "base/memory_item.h"
#include "core/model/flat_layout.h"
#include "core/model/gradient_device.h"
#include "core/model/torch/device_streams.h"

namespace sluice::model {

// The memory that gradient work takes on a device.
MemoryItems torch_gradient_memory(const FlatLayout& layout, const DeviceSelection& selection);

class TorchGradients final : public GradientDevice {
 public:
  struct Parts {
    at::Device device;
    const FlatLayout& layout;
    DeviceStreams& streams;
    // A layer's gradients, flat, in the device's memory of that number.
    std::function<at::Tensor(LayerId layer, int gradient)> gradient;
    // `launch` in a region of the layer.
    std::function<DeviceStreams::Launch(LayerId layer, DeviceStreams::Launch launch)> in_region;
  };
  explicit TorchGradients(Parts parts) : parts_(std::move(parts)) {}

  Status prepare(const DeviceSelection& selection) override;
  Status check(LayerId layer, int gradient, WhenDone done) override;
  Status sums_out(BytePart part, double* block_sums, WhenDone done) override;
  Status select(LayerId layer, int gradient, int segment, float scale, WhenDone done) override;
  Status kept_out(LayerId layer, BytePart part, const KeptPlace& into, WhenDone done) override;
  Status put_back(LayerId layer, const KeptPlace& from, WhenDone done) override;
  Status residual_out(BytePart part, std::byte* residual, WhenDone done) override;
  Status residual_in(BytePart part, const std::byte* residual, WhenDone done) override;

 private:
  void take_memory();
  void sum(LayerId layer, const at::Tensor& gradient);
  void select_from(const DeviceSegment& segment, const at::Tensor& gradient, float scale);
  void put_back_into(const DeviceSegment& segment);
  std::string named(std::string_view what, LayerId layer) const;
  Status copy(StreamRole role, std::string_view what, LayerId layer, DeviceStreams::Launch launch,
              WhenDone done);

  Parts parts_;
  DeviceSelection selection_;
  at::Tensor sums_;          // fp64, of the layer's blocks and parts that has the most
  at::Tensor kept_indices_;  // int32, of the layer that keeps the most
  at::Tensor kept_values_;   // fp32
  at::Tensor residual_;      // fp32, of the model; undefined without feedback
};

}  // namespace sluice::model
