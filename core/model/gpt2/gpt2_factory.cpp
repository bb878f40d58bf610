#include <algorithm>
#include <memory>

#include "core/model/gpt2/gpt2.h"
#include "core/model/gpt2/gpt2_model.h"
#include "core/model/head_chunk.h"
#include "core/model/torch/devices.h"
#include "core/model/torch/dtype.h"
#include "core/model/torch/head_loss.h"
#include "core/model/torch/products.h"
#include "core/model/torch/torch_border.h"
#include "core/model/torch/torch_device.h"

namespace sluice::model {
namespace {

void add_text(Gpt2& gpt2, const ModelShape& shape, BuiltModel& built) {
  if (shape.vocabulary != kByteVocabulary) return;
  built.write_text = [&gpt2](const SampleOptions& sample) { return gpt2.write_text(sample); };
}

Result<BuiltModel> make(const ModelShape& shape, const ModelOptions& options,
                        std::span<std::uint16_t> parameters) {
  ASSIGN_OR_RETURN(std::unique_ptr<Gpt2> gpt2, Gpt2::make(shape, options, parameters));
  BuiltModel built;
  add_text(*gpt2, shape, built);
  built.model = std::move(gpt2);
  return built;
}

Result<BuiltModel> make_on(const OpenedDevice& opened, const ModelShape& shape,
                           const ModelOptions& options, std::span<std::uint16_t> parameters,
                           const LaunchRegion& region) {
  ASSIGN_OR_RETURN(std::unique_ptr<Gpt2Model> gpt2,
                   make_gpt2(shape, options, parameters, opened.device, opened.pinned.get()));
  BuiltModel built;
  add_text(*gpt2, shape, built);
  ASSIGN_OR_RETURN(built.device, at_torch_border("setting up the device that computes",
                                                 [&]() -> Result<std::unique_ptr<ComputeDevice>> {
                                                   return std::make_unique<TorchDevice>(
                                                       opened, *gpt2, *gpt2, options, region);
                                                 }));
  built.model = std::move(gpt2);
  return built;
}

MemoryItems memory(const ModelShape& shape, const ModelOptions& options) {
  return host_items(gpt2_memory(shape, options));
}

MemoryItems device_memory(const OpenedDevice& opened, const ModelShape& shape,
                          const ModelOptions& options) {
  MemoryItems items = torch_device_memory(shape.flat_layout(), options, opened.device);
  for (MemoryItem& item : compute_items(gpt2_memory(shape, options)))
    items.push_back(std::move(item));
  items.push_back(
      {"pieces of the loss",
       launched_piece_bytes(std::min(options.batch * options.sequence, kHeadChunkTokens),
                            shape.vocabulary, opened.device)});
  return items;
}

// A device that computes on the processor has its memory in the host's.
MemoryItems memory_beside(const OpenedDevice& opened, const ModelShape& shape,
                          const ModelOptions& options) {
  const ComputeMemory bound = gpt2_memory(shape, options);
  MemoryItems items = {
      {"program and libraries", bound.library_bytes + library_bytes_of(opened.device)},
      {"tokens", options.micro_step_count * batch_bytes(options.batch * options.sequence)},
      {"activations on their way", bound.offloaded_bytes}};
  if (!computes_on_processor(opened.device)) return items;
  MemoryItem stand_in{"memory of the " + opened.description, 0};
  for (const MemoryItem& item : device_memory(opened, shape, options))
    stand_in.size_bytes += item.size_bytes;
  items.push_back(std::move(stand_in));
  return items;
}

}  // namespace

ComputeMemory gpt2_memory(const ModelShape& shape, const ModelOptions& options) {
  const bool widens = widens_products(dtype_of(options.compute), at::kCPU);
  return compute_memory(shape, options, widens ? Products::widened : Products::of_16_bits);
}

ModelFactory gpt2_factory() { return {.make = make, .memory = memory}; }

Result<ModelFactory> gpt2_factory(const std::string& device, std::int64_t memory_cap_bytes,
                                  int thread_count, const LaunchRegion& region) {
  ASSIGN_OR_RETURN(const DeviceName name, parse_device_name(device));
  if (name.kind == DeviceKind::host) return gpt2_factory();
  ASSIGN_OR_RETURN(const OpenedDevice opened, open_device({name, memory_cap_bytes, thread_count}));
  ModelFactory factory;
  factory.make = [opened, region](const ModelShape& shape, const ModelOptions& options,
                                  std::span<std::uint16_t> parameters) {
    return make_on(opened, shape, options, parameters, region);
  };
  factory.memory = [opened](const ModelShape& shape, const ModelOptions& options) {
    return memory_beside(opened, shape, options);
  };
  factory.device_memory = [opened](const ModelShape& shape, const ModelOptions& options) {
    return device_memory(opened, shape, options);
  };
  factory.gradient_memory = torch_gradient_memory;
  factory.device_memory_cap_bytes = opened.memory_bytes;
  factory.is_device_in_host_memory = computes_on_processor(opened.device);
  factory.device_description = opened.description;
  factory.pinned = opened.pinned;
  return factory;
}

}  // namespace sluice::model
