#include "core/model/torch/torch_device.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

#include "core/model/torch/autograd_regions.h"
#include "core/model/torch/check.h"
#include "core/model/torch/dtype.h"
#include "core/model/torch/host_bytes.h"
#include "core/model/torch/products.h"
#include "core/model/torch/saved_blocks.h"
#include "core/model/torch/torch_border.h"
#include "core/model/widened_pieces.h"

namespace sluice::model {
namespace {

// A layer begins in its place where it does in a cache line of the flat array, so that kernels that
// care for that do the same on a device as in host memory.
constexpr std::int64_t kLineBytes = 64;

std::int64_t line_offset(const LayerRange& layer, std::int64_t element_bytes) {
  return layer.first * element_bytes % kLineBytes / element_bytes;
}

// A tensor over a part of the other's memory that libtorch takes for one of its own: what is copied
// into that memory is no change of this one to autograd. The schedule keeps the two apart.
at::Tensor over(const at::Tensor& memory, at::ScalarType dtype, std::int64_t first,
                std::int64_t count) {
  at::Tensor tensor = at::empty({0}, memory.options().dtype(dtype));
  tensor.set_(memory.storage(), first, {count}, {1});
  return tensor;
}

std::int64_t gradient_element_bytes(const ModelOptions& options) {
  return options.adds_gradients() ? 4 : bytes_of(options.compute);
}

}  // namespace

MemoryItems torch_device_memory(const ModelShape& shape, const ModelOptions& options,
                                at::Device device) {
  const FlatLayout layout = shape.flat_layout();
  // Forward and backward are launched by a thread each.
  const std::int64_t widened =
      widens_products(dtype_of(options.compute), device) ? 2 * kWidenedBytes : 0;
  const DeviceOwnMemory own = own_memory_of(device);
  const std::int64_t element_bytes = bytes_of(options.compute);
  return {
      {"tables, used by the first layer and the last", layout.staying_elements() * element_bytes},
      {"parameters of 2 layers", 2 * (layout.largest_passing() * element_bytes + kLineBytes)},
      {"gradients of 2 layers",
       2 * (layout.largest_layer_elements() * gradient_element_bytes(options) + kLineBytes)},
      {"tokens", options.micro_step_count * batch_bytes(shape, options.batch, options.sequence)},
      {"pieces of widened products", widened},
      {"workspaces of products", own.workspace_bytes},
      {"segments that are not full", own.segment_bytes}};
}

at::Tensor TorchDevice::Place::flat(const LayerRange& layer, at::ScalarType dtype) const {
  const auto element_bytes = static_cast<std::int64_t>(c10::elementSize(dtype));
  return over(memory, dtype, line_offset(layer, element_bytes), layer.count);
}

at::Tensor TorchDevice::Place::bytes(const LayerRange& layer, std::int64_t element_bytes,
                                     BytePart part) const {
  CHECK_LE(part.first_byte + part.size_bytes, layer.count * element_bytes);
  return over(memory, at::kByte,
              line_offset(layer, element_bytes) * element_bytes + part.first_byte, part.size_bytes);
}

TorchDevice::TorchDevice(const OpenedDevice& opened, TrainableModel& model, TorchLayers& layers,
                         const ModelOptions& options, LaunchRegion region)
    : opened_(opened),
      model_(model),
      layers_(layers),
      region_(std::move(region)),
      base_(options.base),
      base_layout_(layers.base_layout()),
      dtype_(dtype_of(options.compute)),
      gradient_dtype_(options.adds_gradients() ? at::kFloat : dtype_),
      gradient_work_({opened.device, model.layout(), streams_,
                      [this](LayerId layer, int gradient) { return gradient_of(layer, gradient); },
                      [this](LayerId layer, DeviceStreams::Launch launch) {
                        return in_region(layer, std::move(launch));
                      }}),
      streams_(opened.device, ComputeThreads(options.thread_count)) {
  streams_.now([this] { take_memory(); });
  for (std::int32_t l = 0; l < model.layout().layer_count(); ++l) {
    const LayerId layer{l};
    layers_.bind(layer, parameters_.of(layer).flat(model.layout().layer(layer), dtype_));
    if (base_layout_.parameter_count > 0)
      layers_.bind_base(layer, base_places_.of(layer).flat(base_layout_.layer(layer), dtype_));
  }
}

// A layer that trains nothing has a place too: kernels get no memory that is none.
void TorchDevice::take(Place& place, std::int64_t size_bytes, const std::string& name) const {
  place.memory = at::zeros({std::max(size_bytes, kLineBytes)},
                           at::TensorOptions(opened_.device).dtype(at::kByte));
  name_memory(opened_.device, place.memory.data_ptr(), name);
}

void TorchDevice::take(Places& places, const FlatLayout& layout, std::string_view what) const {
  const std::int64_t element_bytes = bytes_of(model_.parameter_kind());
  places.first_stays = layout.first_stays;
  take(places.tables, layout.staying_elements() * element_bytes, fmt::format("the tables{}", what));
  for (const std::size_t i : {0U, 1U})
    take(places.others[i], layout.largest_passing() * element_bytes + kLineBytes,
         fmt::format("parameters of layers in place {}{}", i, what));
}

void TorchDevice::take_memory() {
  take(parameters_, model_.layout(), "");
  if (base_layout_.parameter_count > 0) take(base_places_, base_layout_, " (base weights)");
  for (const std::size_t i : {0U, 1U}) {
    take(gradients_[i],
         model_.layout().largest_layer_elements() *
                 static_cast<std::int64_t>(c10::elementSize(gradient_dtype_)) +
             kLineBytes,
         fmt::format("gradients of layers in place {}", i));
  }
}

const TorchDevice::Place& TorchDevice::Places::of(LayerId layer) const {
  return first_stays && index_of(layer) == 0
             ? tables
             : others[static_cast<std::size_t>(index_of(layer) % 2)];
}

at::Tensor TorchDevice::gradient_of(LayerId layer, int gradient) const {
  return gradients_[static_cast<std::size_t>(gradient)].flat(model_.layout().layer(layer),
                                                             gradient_dtype_);
}

std::string TorchDevice::named(std::string_view what, LayerId layer) const {
  return fmt::format("{} of layer {}", what, model_.layout().layer(layer).name);
}

DeviceStreams::Launch TorchDevice::in_region(LayerId layer, DeviceStreams::Launch launch) const {
  if (!region_) return launch;
  return [this, layer, launch = std::move(launch)] {
    const std::shared_ptr<void> region = region_(layer);
    launch();
  };
}

Status TorchDevice::batch_in(int micro_step, BytePart part, WhenDone done) {
  const TorchLayers::NumbersPlaces& places = layers_.numbers_places(micro_step);
  return streams_.copy(
      StreamRole::in, "bringing a batch",
      in_region(kNoLayer,
                [&] {
                  over(places.on_device, at::kByte, part.first_byte, part.size_bytes)
                      .copy_(
                          over(places.in_host_memory, at::kByte, part.first_byte, part.size_bytes),
                          /*non_blocking=*/true);
                }),
      std::move(done));
}

void TorchDevice::copy_layer(const Places& places, const FlatLayout& layout, LayerId layer,
                             const ParameterSpan& all, BytePart part) const {
  if (part.size_bytes == 0) return;
  const LayerRange& range = layout.layer(layer);
  const std::byte* const from = all.subspan(range.first, range.count).data() + part.first_byte;
  places.of(layer)
      .bytes(range, bytes_of(all.kind()), part)
      .copy_(bytes_in_host_memory(from, part.size_bytes), /*non_blocking=*/true);
}

// Its base comes behind its own parameters.
Status TorchDevice::layer_in(LayerId layer, BytePart part, WhenDone done) {
  const std::int64_t own_bytes =
      model_.layout().layer(layer).count * bytes_of(model_.parameter_kind());
  const std::int64_t end_byte = part.first_byte + part.size_bytes;
  const auto between = [](std::int64_t first, std::int64_t end) {
    return BytePart{first, std::max<std::int64_t>(0, end - first)};
  };
  const BytePart own = between(part.first_byte, std::min(end_byte, own_bytes));
  const std::int64_t base_first = std::max<std::int64_t>(0, part.first_byte - own_bytes);
  const BytePart of_base = between(base_first, end_byte - own_bytes);
  return streams_.copy(StreamRole::in, named("bringing parameters", layer),
                       in_region(layer,
                                 [&] {
                                   copy_layer(parameters_, model_.layout(), layer,
                                              model_.parameters(), own);
                                   copy_layer(base_places_, base_layout_, layer, base_, of_base);
                                 }),
                       std::move(done));
}

Status TorchDevice::forward(LayerId layer, int micro_step, WhenDone done) {
  streams_.launch(
      StreamRole::compute, named("forward", layer),
      in_region(layer, [this, layer, micro_step] { layers_.launch_forward(layer, micro_step); }),
      std::move(done));
  return ok_status();
}

Status TorchDevice::backward(LayerId layer, int micro_step, double gradient_scale, int gradient,
                             WhenDone done) {
  const at::Tensor into = gradient_of(layer, gradient);
  streams_.launch(StreamRole::compute, named("backward", layer),
                  in_region(layer,
                            [this, layer, micro_step, gradient_scale, into] {
                              const AutogradRegions regions(region_, layer);
                              if (micro_step == 0 && gradient_dtype_ == at::kFloat)
                                at::Tensor(into).zero_();
                              layers_.launch_backward(layer, micro_step, gradient_scale, into);
                            }),
                  std::move(done));
  return ok_status();
}

Status TorchDevice::gradient_out(LayerId layer, int gradient, BytePart part,
                                 std::byte* layer_gradient, WhenDone done) {
  const auto element_bytes = static_cast<std::int64_t>(c10::elementSize(gradient_dtype_));
  const Place& place = gradients_[static_cast<std::size_t>(gradient)];
  return streams_.copy(
      StreamRole::out, named("taking gradients", layer),
      in_region(layer,
                [&] {
                  bytes_in_host_memory(layer_gradient + part.first_byte, part.size_bytes)
                      .copy_(place.bytes(model_.layout().layer(layer), element_bytes, part),
                             /*non_blocking=*/true);
                }),
      std::move(done));
}

Status TorchDevice::loss_out(int micro_step, WhenDone done) {
  return streams_.copy(StreamRole::out, "taking a loss",
                       in_region(LayerId{model_.layout().layer_count() - 1},
                                 [&] {
                                   layers_.loss_sum_in_host_memory(micro_step)
                                       .copy_(layers_.loss_sum(micro_step), /*non_blocking=*/true);
                                 }),
                       std::move(done));
}

Status TorchDevice::blocks_out(LayerId layer, int micro_step, BytePart part, WhenDone done) {
  return streams_.copy(
      StreamRole::out, named("taking activations", layer),
      in_region(layer, [&] { layers_.saved_blocks(layer, micro_step).copy_out(part); }),
      std::move(done));
}

Status TorchDevice::blocks_in(LayerId layer, int micro_step, BytePart part, WhenDone done) {
  return streams_.copy(
      StreamRole::in, named("bringing activations", layer),
      in_region(layer,
                [&] {
                  layers_.saved_blocks(layer, micro_step).copy_in(part, streams_.compute_stream());
                }),
      std::move(done));
}

ComputeDevice::MemoryUse TorchDevice::memory_use() const {
  const auto stats =
      c10::getDeviceAllocator(opened_.device.type())->getDeviceStats(opened_.device.index());
  const auto& all =
      stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  return {all.current, all.peak, opened_.memory_bytes};
}

}  // namespace sluice::model
