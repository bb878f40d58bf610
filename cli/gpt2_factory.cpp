#include "cli/gpt2_factory.h"

#include "core/model/gpt2/gpt2.h"

namespace sluice::cli {
namespace {

model::Gpt2Options options_of(const settings::RunConfig& config) {
  model::Gpt2Options options;
  options.batch = config.batch.batch;
  options.sequence = config.batch.sequence;
  options.micro_step_count = static_cast<int>(config.batch.grad_accum_steps);
  options.activations = config.arithmetic.activations;
  options.compute = config.arithmetic.precision == Float16Kind::bf16 ? model::ComputeKind::bf16
                                                                     : model::ComputeKind::fp16;
  options.thread_count = static_cast<int>(config.resources.threads);
  return options;
}

Result<train::BuiltModel> make(const model::ModelShape& shape, const settings::RunConfig& config,
                               std::span<std::uint16_t> parameters) {
  ASSIGN_OR_RETURN(std::unique_ptr<model::Gpt2> gpt2,
                   model::Gpt2::make(shape, options_of(config), parameters));
  train::BuiltModel built;
  if (shape.vocabulary == 256) {  // byte-level: tokens can be written as text
    const auto seed = static_cast<std::uint64_t>(config.schedule.seed);
    built.sample = [model = gpt2.get(), seed](const settings::SampleConfig& sample) {
      return model->sample_text({sample.prompt, sample.tokens, sample.temperature, seed});
    };
  }
  built.model = std::move(gpt2);
  return built;
}

MemoryItems memory(const model::ModelShape& shape, const settings::RunConfig& config) {
  const model::ComputeMemory bound = model::gpt2_memory(shape, options_of(config));
  return {{"program and libraries", bound.library_bytes},
          {"activations", bound.activation_bytes},
          {"temporaries of the widest layer", bound.temporary_bytes},
          {"gradient of the tied table", bound.tied_gradient_bytes}};
}

}  // namespace

train::ModelFactory gpt2_factory() { return {make, memory}; }

}  // namespace sluice::cli
