#include "core/model/library/models.h"

#include <algorithm>
#include <memory>

#include "core/model/bert/bert.h"
#include "core/model/gpt2/gpt2.h"
#include "core/model/head_chunk.h"
#include "core/model/llama/llama.h"
#include "core/model/t5/t5.h"
#include "core/model/torch/check.h"
#include "core/model/torch/devices.h"
#include "core/model/torch/dtype.h"
#include "core/model/torch/head_loss.h"
#include "core/model/torch/products.h"
#include "core/model/torch/stack_model.h"
#include "core/model/torch/torch_border.h"
#include "core/model/torch/torch_device.h"

namespace sluice::model {
namespace {

// Those of core/model/architecture.h that are trainable.
const TorchArchitecture& torch_architecture_of(const ModelShape& shape) {
  if (shape.family == Family::llama) return kTorchLlama;
  if (shape.classifies()) return kTorchBertClassifier;
  if (shape.family == Family::bert) return kTorchBert;
  if (shape.family == Family::t5) return kTorchT5;
  CHECK(shape.family == Family::gpt2);
  return kTorchGpt2;
}

Result<std::unique_ptr<StackModel>> make_stack(const ModelShape& shape, const ModelOptions& options,
                                               const ParameterSpan& parameters, at::Device device,
                                               io::PinnedMemory* pinned) {
  RETURN_IF_ERROR(check_trainable(shape));
  return make_stack_model(torch_architecture_of(shape), shape, options, parameters, device, pinned);
}

BuiltModel built_of(std::unique_ptr<StackModel> stack) {
  BuiltModel built;
  built.write_text = [writer = stack.get()](const SampleOptions& sample) {
    return writer->write_text(sample);
  };
  built.model = std::move(stack);
  return built;
}

Result<BuiltModel> make(const ModelShape& shape, const ModelOptions& options,
                        const ParameterSpan& parameters) {
  ASSIGN_OR_RETURN(std::unique_ptr<StackModel> stack,
                   make_stack(shape, options, parameters, at::kCPU, nullptr));
  return built_of(std::move(stack));
}

Result<BuiltModel> make_on(const OpenedDevice& opened, const ModelShape& shape,
                           const ModelOptions& options, const ParameterSpan& parameters,
                           const LaunchRegion& region) {
  ASSIGN_OR_RETURN(std::unique_ptr<StackModel> stack,
                   make_stack(shape, options, parameters, opened.device, opened.pinned.get()));
  ASSIGN_OR_RETURN(std::unique_ptr<ComputeDevice> device,
                   at_torch_border("setting up the device that computes",
                                   [&]() -> Result<std::unique_ptr<ComputeDevice>> {
                                     return std::make_unique<TorchDevice>(opened, *stack, *stack,
                                                                          options, region);
                                   }));
  BuiltModel built = built_of(std::move(stack));
  built.device = std::move(device);
  return built;
}

MemoryItems memory(const ModelShape& shape, const ModelOptions& options) {
  return host_items(host_compute_memory(shape, options));
}

MemoryItems device_memory(const OpenedDevice& opened, const ModelShape& shape,
                          const ModelOptions& options) {
  MemoryItems items = torch_device_memory(shape, options, opened.device);
  const ComputeMemory bound = host_compute_memory(shape, options);
  items.push_back({"base weights (lora_rank)", bound.base_bytes});
  for (MemoryItem& item : compute_items(bound)) items.push_back(std::move(item));
  items.push_back(
      {"pieces of the loss",
       launched_piece_bytes(std::min(options.batch * shape.target_sequence(options.sequence),
                                     head_chunk_tokens(answer_count(shape))),
                            answer_count(shape), opened.device)});
  return items;
}

// A device that computes on the processor has its memory in the host's.
MemoryItems memory_beside(const OpenedDevice& opened, const ModelShape& shape,
                          const ModelOptions& options) {
  const ComputeMemory bound = host_compute_memory(shape, options);
  MemoryItems items = {
      {"program and libraries", bound.library_bytes + library_bytes_of(opened.device)},
      {"tokens", options.micro_step_count * batch_bytes(shape, options.batch, options.sequence)},
      {"activations on their way", bound.offloaded_bytes}};
  if (!computes_on_processor(opened.device)) return items;
  MemoryItem stand_in{"memory of the " + opened.description, 0};
  for (const MemoryItem& item : device_memory(opened, shape, options))
    stand_in.size_bytes += item.size_bytes;
  items.push_back(std::move(stand_in));
  return items;
}

}  // namespace

Products host_products(ParameterKind kind) {
  const at::ScalarType dtype = dtype_of(kind);
  if (widens_products(dtype, at::kCPU)) return Products::widened;
  return sums_products_apart(dtype, at::kCPU) ? Products::summed_apart : Products::as_they_are;
}

ComputeMemory host_compute_memory(const ModelShape& shape, const ModelOptions& options) {
  return compute_memory(shape, options, host_products(options.compute));
}

ModelFactory host_factory() { return {.make = make, .memory = memory}; }

Result<ModelFactory> model_factory(const std::string& device, std::int64_t memory_cap_bytes,
                                   int thread_count, const LaunchRegion& region) {
  ASSIGN_OR_RETURN(const DeviceName name, parse_device_name(device));
  if (name.kind == DeviceKind::host) return host_factory();
  ASSIGN_OR_RETURN(const OpenedDevice opened, open_device({name, memory_cap_bytes, thread_count}));
  ModelFactory factory;
  factory.make = [opened, region](const ModelShape& shape, const ModelOptions& options,
                                  const ParameterSpan& parameters) {
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
