#pragma once
// What the tests of GPT-2 share: parameters, batches, and whole steps through the seam.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/model/library/models.h"

namespace sluice::model {

// Random tokens, a pure function of the seed.
struct Batch {
  Batch(std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary, std::uint64_t seed);
  TokenBatch view() const {
    return {batch,           sequence,  inputs,          targets,        divisor,
            document_begins, drop_keys, target_sequence, decoder_inputs, segments};
  }

  std::int64_t batch;
  std::int64_t sequence;
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  double divisor = 0;
  std::vector<std::int32_t> document_begins = {};
  std::vector<std::uint32_t> drop_keys = {};  // none: nothing is dropped
  std::int64_t target_sequence = 0;           // of a decoder, for tests of models that have one
  std::vector<std::int32_t> decoder_inputs;
  std::vector<std::int32_t> segments;
};

// Three layers, so that there is one between the first and the last.
inline const ModelShape kSmall{"small", 3, 48, 3, 24, 97};

// The initial values of a shape, rounded to 16 bits. `weight_scale` makes the weights larger than a
// model begins with, so that attention and the tied table matter in the gradients.
std::vector<std::uint16_t> make_parameters(const ModelShape& shape, Float16Kind kind,
                                           double weight_scale = 1);

// The same in fp32.
std::vector<float> make_weights(const ModelShape& shape, double weight_scale = 1);

// In host memory. Made with REQUIRE.
BuiltModel make_on_host(const ModelShape& shape, const ModelOptions& options,
                        std::span<std::uint16_t> parameters);
BuiltModel make_on_host(const ModelShape& shape, const ModelOptions& options,
                        const ParameterSpan& parameters);

struct Gpt2Run {
  Gpt2Run(const ModelShape& shape, const ModelOptions& options, double weight_scale = 1);

  // All micro-batches through all layers; into fp32 (from zero), or into 16 bits, widened.
  std::vector<float> step(const std::vector<Batch>& micro_batches, double gradient_scale);
  std::vector<float> step_16bit(const Batch& batch, double gradient_scale);
  // All that write_text's writer writes.
  Result<std::string> text(const SampleOptions& options) const;

  std::vector<std::uint16_t> parameters;  // of 16 bits
  std::vector<float> parameters_fp32;     // or these
  std::unique_ptr<TrainableModel> model;
  std::function<Result<std::unique_ptr<TextWriter>>(const SampleOptions&)> write_text;

 private:
  void forward(const std::vector<Batch>& micro_batches);
};

}  // namespace sluice::model
