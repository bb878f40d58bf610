// The tests' model against what every model promises: what passes with it says something of the
// real one.

#include "tests/core/train/arithmetic_model.h"

#include "base/float16.h"
#include "core/model/flat_layout.h"
#include "tests/core/model/trainable_model_conformance.h"

namespace sluice {
namespace {

TEST_CASE("the arithmetic model keeps what every model promises") {
  const Float16Kind kind = GENERATE(Float16Kind::bf16, Float16Kind::fp16);
  const model::ModelShape shape{"small", 2, 16, 2, 12, 97};
  model::ModelMaker maker{.vocabulary = 97, .batch = 3, .sequence = 10, .make = {}};
  maker.make = [kind, &shape](int micro_step_count) {
    auto held = std::make_unique<model::HeldModel>();
    const model::FlatLayout layout = shape.flat_layout();
    std::vector<float> values(static_cast<std::size_t>(layout.parameter_count));
    model::fill_initial(layout, 1, 0, values);
    for (const float value : values) held->parameters.push_back(float16_from_float(kind, value));
    held->model = std::make_unique<ArithmeticModel>(shape, micro_step_count,
                                                    ParameterSpan(held->parameters, kind));
    return held;
  };
  check_conformance(model::trainable_model_cases(), maker);
}

}  // namespace
}  // namespace sluice
