// GPT-2 against what every model promises, in both 16-bit kinds and with either way of keeping
// activations.

#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/trainable_model_conformance.h"

namespace sluice::model {
namespace {

ModelMaker gpt2_maker(Float16Kind compute, Activations activations) {
  ModelMaker maker{.vocabulary = 97, .batch = 3, .sequence = 20, .make = {}};
  maker.make = [=](int micro_step_count) {
    auto held = std::make_unique<HeldModel>();
    held->parameters = make_parameters(kSmall, compute, 4);
    const ModelOptions options{.batch = 3,
                               .sequence = 20,
                               .micro_step_count = micro_step_count,
                               .activations = activations,
                               .compute = parameter_kind(compute),
                               .thread_count = 2};
    held->model = make_on_host(kSmall, options, held->parameters).model;
    return held;
  };
  return maker;
}

TEST_CASE("GPT-2 in bf16 keeps what every model promises") {
  const Activations activations =
      GENERATE(Activations::keep, Activations::recompute, Activations::offload);
  check_conformance(trainable_model_cases(), gpt2_maker(Float16Kind::bf16, activations));
}

TEST_CASE("GPT-2 in fp16 keeps what every model promises") {
  check_conformance(trainable_model_cases(), gpt2_maker(Float16Kind::fp16, Activations::keep));
}

}  // namespace
}  // namespace sluice::model
