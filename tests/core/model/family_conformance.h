#pragma once
// A family's model in bf16 against what every model promises.
//
// Thread contract: within a test case.

#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/trainable_model_conformance.h"

namespace sluice::model {

// `weight_scale`: as make_parameters().
inline void check_family(const ModelShape& shape, Activations activations, double weight_scale) {
  ModelMaker maker{.vocabulary = shape.vocabulary, .batch = 3, .sequence = 20, .make = {}};
  if (shape.has_decoder() || shape.classifies())
    maker.target_sequence = shape.target_sequence(maker.sequence);
  if (shape.classifies()) maker.classes = shape.classes;
  maker.make = [=](int micro_step_count) {
    auto held = std::make_unique<HeldModel>();
    held->parameters = make_parameters(shape, Float16Kind::bf16, weight_scale);
    const ModelOptions options{.batch = 3,
                               .sequence = 20,
                               .micro_step_count = micro_step_count,
                               .activations = activations,
                               .thread_count = 2};
    held->model = make_on_host(shape, options, held->parameters).model;
    return held;
  };
  check_conformance(trainable_model_cases(), maker);
}

}  // namespace sluice::model
