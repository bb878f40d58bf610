#pragma once
// The compute device in libtorch (core/model/compute_device.h): memory for two layers' parameters
// and two layers' gradients, the tables that are used from the first layer to the last all along,
// and three streams, one each for what is computed, what comes in and what goes out.
//
// Layer l lies in place l % 2, so the layer that is computed and the one that comes never share
// one; layer 0, whose tables the last one uses too, has a place of its own.
//
// Thread contract: as ComputeDevice.

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <string>

#include "core/model/launch_region.h"
#include "core/model/model_factory.h"
#include "core/model/torch/device_streams.h"
#include "core/model/torch/devices.h"
#include "core/model/torch/torch_gradients.h"
#include "core/model/torch/torch_layers.h"

namespace sluice::model {

// The memory that a device holds beside that for computing the model.
MemoryItems torch_device_memory(const ModelShape& shape, const ModelOptions& options,
                                at::Device device);

class TorchDevice final : public ComputeDevice {
 public:
  // Binds the layers of the model; it outlives the device. Throws libtorch's exceptions.
  // Each launch is in a `region` of its layer.
  TorchDevice(const OpenedDevice& opened, TrainableModel& model, TorchLayers& layers,
              const ModelOptions& options, LaunchRegion region = {});

  std::string description() const override { return opened_.description; }
  Status batch_in(int micro_step, BytePart part, WhenDone done) override;
  Status layer_in(LayerId layer, BytePart part, WhenDone done) override;
  Status forward(LayerId layer, int micro_step, WhenDone done) override;
  Status backward(LayerId layer, int micro_step, double gradient_scale, int gradient,
                  WhenDone done) override;
  Status gradient_out(LayerId layer, int gradient, BytePart part, std::byte* layer_gradient,
                      WhenDone done) override;
  Status loss_out(int micro_step, WhenDone done) override;
  Status blocks_out(LayerId layer, int micro_step, BytePart part, WhenDone done) override;
  Status blocks_in(LayerId layer, int micro_step, BytePart part, WhenDone done) override;
  MemoryUse memory_use() const override;
  GradientDevice& gradients() override { return gradient_work_; }

 private:
  struct Place {  // of a layer's parameters or gradients
    at::Tensor memory;
    at::Tensor flat(const LayerRange& layer, at::ScalarType dtype) const;
    at::Tensor bytes(const LayerRange& layer, std::int64_t element_bytes, BytePart part) const;
  };
  // The places of a kind of parameters: of a layer that stays, and those that the others take turns
  // with.
  struct Places {
    Place tables;
    std::array<Place, 2> others;
    bool first_stays = true;  // FlatLayout
    const Place& of(LayerId layer) const;
  };
  void take(Place& place, std::int64_t size_bytes, const std::string& name) const;
  void take(Places& places, const FlatLayout& layout, std::string_view what) const;
  void copy_layer(const Places& places, const FlatLayout& layout, LayerId layer,
                  const ParameterSpan& all, BytePart part) const;
  void take_memory();
  at::Tensor gradient_of(LayerId layer, int gradient) const;
  std::string named(std::string_view what, LayerId layer) const;
  // `launch`, in a region of the layer.
  DeviceStreams::Launch in_region(LayerId layer, DeviceStreams::Launch launch) const;

  OpenedDevice opened_;
  TrainableModel& model_;
  TorchLayers& layers_;
  LaunchRegion region_;
  ParameterSpan base_;      // of adapters, in host memory
  FlatLayout base_layout_;  // empty: it does not come by layer
  at::ScalarType dtype_;
  at::ScalarType gradient_dtype_;
  Places parameters_;
  Places base_places_;  // where a base comes by layer
  std::array<Place, 2> gradients_;
  TorchGradients gradient_work_;
  DeviceStreams streams_;  // the last: it waits for what works on the memory above
};

}  // namespace sluice::model
