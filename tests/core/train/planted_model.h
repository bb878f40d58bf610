#pragma once
// The arithmetic model with gradients that a test has planted: one that is large, or not finite.

#include <limits>

#include "base/float16.h"
#include "tests/core/train/arithmetic_model.h"

namespace sluice {

// What a step's gradients are made to be.
enum class Planted : std::uint8_t { nothing, clipped, overflow, no_loss };  // no_loss: nor the loss
struct PlantedStep {
  Planted what = Planted::nothing;
  std::int32_t layer = 0;      // whose gradient it is in
  std::int64_t from_last = 0;  // and which element
};
using PlantedSteps = std::vector<PlantedStep>;

// The arithmetic model, whose gradients hold what was planted.
class PlantedModel final : public model::TrainableModel {
 public:
  PlantedModel(std::unique_ptr<model::TrainableModel> inner, const PlantedSteps& steps)
      : inner_(std::move(inner)), steps_(steps) {}

  const model::FlatLayout& layout() const override { return inner_->layout(); }
  ParameterKind parameter_kind() const override { return inner_->parameter_kind(); }
  ParameterSpan parameters() override { return inner_->parameters(); }
  Status set_batch(int micro_step, const model::TokenBatch& batch, model::BatchUse use) override {
    if (micro_step == 0) step_ += 1;
    return inner_->set_batch(micro_step, batch, use);
  }
  Status forward(LayerId layer, int micro_step) override {
    return inner_->forward(layer, micro_step);
  }
  Status backward(LayerId layer, int micro_step, double gradient_scale,
                  const model::LayerGradient& into) override {
    RETURN_IF_ERROR(inner_->backward(layer, micro_step, gradient_scale, into));
    const PlantedStep& step = steps_[static_cast<std::size_t>(step_) % steps_.size()];
    if (step.what == Planted::nothing || step.layer != index_of(layer)) return ok_status();
    const std::int64_t at = into.element_count - 1 - step.from_last % into.element_count;
    const float value =
        step.what == Planted::clipped ? 57'344.0F : std::numeric_limits<float>::infinity();
    if (into.values_16bit != nullptr) {
      into.values_16bit[at] = float16_from_float(float16_kind(parameter_kind()), value);
    } else {
      into.values_fp32[at] = value;
    }
    return ok_status();
  }
  double loss(int micro_step) const override {
    const PlantedStep& step = steps_[static_cast<std::size_t>(step_) % steps_.size()];
    return step.what == Planted::no_loss ? std::numeric_limits<double>::quiet_NaN()
                                         : inner_->loss(micro_step);
  }
  Status choose_activations(const model::LayerActivations& activations) override {
    return inner_->choose_activations(activations);
  }
  model::KeptBlocks* kept_blocks() override { return inner_->kept_blocks(); }

 private:
  std::unique_ptr<model::TrainableModel> inner_;
  const PlantedSteps& steps_;
  std::int64_t step_ = -1;
};

inline model::ModelFactory planted_factory(const PlantedSteps& steps) {
  model::ModelFactory factory = arithmetic_factory();
  factory.make = [make = factory.make, &steps](
                     const model::ModelShape& shape, const model::ModelOptions& options,
                     const ParameterSpan& parameters) -> Result<model::BuiltModel> {
    ASSIGN_OR_RETURN(model::BuiltModel built, make(shape, options, parameters));
    built.model = std::make_unique<PlantedModel>(std::move(built.model), steps);
    return built;
  };
  return factory;
}

}  // namespace sluice
