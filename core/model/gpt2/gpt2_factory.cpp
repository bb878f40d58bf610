#include "core/model/gpt2/gpt2.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kByteVocabulary = 256;  // tokens can be written as text

Result<BuiltModel> make(const ModelShape& shape, const ModelOptions& options,
                        std::span<std::uint16_t> parameters) {
  ASSIGN_OR_RETURN(std::unique_ptr<Gpt2> gpt2, Gpt2::make(shape, options, parameters));
  BuiltModel built;
  if (shape.vocabulary == kByteVocabulary) {
    built.sample = [model = gpt2.get()](const SampleOptions& sample) {
      return model->sample_text(sample);
    };
  }
  built.model = std::move(gpt2);
  return built;
}

MemoryItems memory(const ModelShape& shape, const ModelOptions& options) {
  const ComputeMemory bound = gpt2_memory(shape, options);
  return {{"program and libraries", bound.library_bytes},
          {"activations", bound.activation_bytes},
          {"temporaries of the widest layer", bound.temporary_bytes},
          {"gradient of the tied table", bound.tied_gradient_bytes}};
}

}  // namespace

ModelFactory gpt2_factory() { return {make, memory}; }

}  // namespace sluice::model
