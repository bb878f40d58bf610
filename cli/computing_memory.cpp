#include "cli/computing_memory.h"

#include "core/model/compute_memory.h"
#include "core/model/model_library.h"
#include "core/plan/model_options.h"
#include "core/plan/run_plan.h"
#include "core/tune/recorded_run.h"

namespace sluice::cli {
namespace {

// As core/model/torch/torch_device.cpp lays them out: the tables, which the first layer and the
// last use, two layers' parameters and gradients at a time, a base, and what is computed.
MemoryItems accelerator_items(const plan::RunPlan& run, const model::ComputeMemory& bound) {
  const std::int64_t value_bytes = bytes_of(run.config.arithmetic.precision);
  const std::int64_t gradient_bytes =
      plan::model_options(run.config).adds_gradients() ? 4 : value_bytes;
  MemoryItems items = {
      {"tables, used by the first layer and the last", run.layout.staying_elements() * value_bytes},
      {"parameters of 2 layers", 2 * run.layout.largest_passing() * value_bytes},
      {"gradients of 2 layers", 2 * run.layout.largest_layer_elements() * gradient_bytes},
      {"base weights (lora_rank)", bound.base_bytes}};
  for (MemoryItem& item : model::compute_items(bound)) items.push_back(std::move(item));
  return items;
}

// A modelled machine multiplies 16-bit numbers, whatever the processor does that plans for it.
plan::ModelMemory modelled(const plan::RunPlan& run) {
  const auto accelerator_count = static_cast<std::int64_t>(run.platform.accelerator_routes.size());
  const model::ComputeMemory bound = model::compute_memory(
      run.shape, plan::model_options(run.config), model::Products::as_they_are);
  plan::ModelMemory memory;
  if (accelerator_count == 0) {
    memory.host = model::host_items(bound);
    return memory;
  }
  memory.host = {{"program and libraries", bound.library_bytes},
                 {"activations on their way", bound.offloaded_bytes}};
  memory.accelerator = "the modelled accelerator";
  memory.on_accelerator = accelerator_items(run, bound);
  memory.accelerator_cap_bytes = accelerator_count * run.config.resources.accelerator_memory_bytes;
  return memory;
}

}  // namespace

tune::MemoryModel modelled_memory() {
  tune::MemoryModel memory;
  memory.computing = modelled;
  memory.host = plan::memory_cap({});
  return memory;
}

Result<tune::MemoryModel> memory_here(const settings::RunConfig& config) {
  ASSIGN_OR_RETURN(const model::ModelLibrary* const models, model::load_model_library());
  ASSIGN_OR_RETURN(
      const model::ModelFactory factory,
      models->factory(config.resources.device, config.resources.accelerator_memory_bytes,
                      static_cast<int>(config.resources.threads), {}));
  tune::MemoryModel memory;
  memory.computing = [factory](const plan::RunPlan& run) {
    return plan::model_memory(factory, run);
  };
  memory.devices_have_own = config.offload.backend == settings::Backend::xrt;
  memory.host = plan::memory_cap(config);
  memory.is_here = true;
  return memory;
}

Result<tune::MemoryModel> memory_of(const tune::RecordedRun& run) {
  if (run.is_simulated) return modelled_memory();
  return memory_here(run.config);
}

}  // namespace sluice::cli
