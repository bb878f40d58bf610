#include "core/plan/model_options.h"

namespace sluice::plan {

model::ModelOptions model_options(const settings::RunConfig& config) {
  return {.batch = config.batch.batch,
          .sequence = config.batch.sequence,
          .micro_step_count = static_cast<int>(config.batch.grad_accum_steps),
          .activations = config.arithmetic.activations,
          .activation_buffer_bytes = config.arithmetic.activation_buffer_bytes,
          .compute = config.arithmetic.precision,
          .thread_count = static_cast<int>(config.resources.threads),
          .base_comes_by_layer =
              config.lora.rank > 0 && config.offload.parameters == offload::ParameterTier::storage,
          .documents = config.objective.documents,
          .ranks_add_gradients = config.batch.rank_count > 1};
}

model::LoraChoice lora_choice(const settings::RunConfig& config) {
  return {.rank = config.lora.rank, .alpha = config.lora.alpha, .targets = config.lora.targets};
}

model::SampleOptions sample_options(const settings::RunConfig& config) {
  return {.prompt = config.sample.prompt,
          .token_count = config.sample.tokens,
          .temperature = config.sample.temperature,
          .seed = static_cast<std::uint64_t>(config.schedule.seed)};
}

}  // namespace sluice::plan
