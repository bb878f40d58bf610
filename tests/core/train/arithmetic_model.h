#pragma once
// A TrainableModel of plain arithmetic: no libtorch, so the whole training loop runs under the
// sanitizers. Its gradients depend on every parameter and every token, through a formula that is
// done in one order; it learns, slowly, to bring its parameters to a fixed pattern.

#include <cmath>
#include <vector>

#include "core/model/model_factory.h"
#include "core/model/trainable_model.h"

namespace sluice {

class ArithmeticModel final : public model::TrainableModel {
 public:
  ArithmeticModel(const model::ModelShape& shape, int micro_step_count, Float16Kind kind,
                  std::span<std::uint16_t> parameters)
      : layout_(shape.flat_layout()),
        vocabulary_(shape.vocabulary),
        kind_(kind),
        parameters_(parameters),
        noise_(static_cast<std::size_t>(micro_step_count)),
        losses_(static_cast<std::size_t>(micro_step_count)) {}

  const model::FlatLayout& layout() const override { return layout_; }
  Float16Kind parameter_kind() const override { return kind_; }
  std::span<std::uint16_t> parameters() override { return parameters_; }

  Status set_batch(int micro_step, const model::TokenBatch& batch,
                   model::BatchUse /*use*/) override {
    for (const std::int32_t token : batch.inputs) {
      if (token < 0 || token >= vocabulary_)
        return make_error(ErrorCode::config, "token {} is not in the vocabulary of {}", token,
                          vocabulary_);
    }
    double sum = 0;
    for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
      sum += (batch.inputs[i] - 96) * static_cast<double>(1 + i % 7);
    }
    noise_[at(micro_step)] = static_cast<float>(sum / static_cast<double>(batch.inputs.size()));
    return ok_status();
  }

  Status forward(LayerId layer, int micro_step) override {
    if (index_of(layer) == 0) losses_[at(micro_step)] = 0;
    const model::LayerRange& range = layout_.layer(layer);
    for (std::int64_t i = 0; i < range.count; ++i) {
      const double difference = difference_at(range.first + i);
      losses_[at(micro_step)] +=
          difference * difference / static_cast<double>(layout_.parameter_count);
    }
    return ok_status();
  }

  Status backward(LayerId layer, int micro_step, double gradient_scale,
                  const model::LayerGradient& into) override {
    const model::LayerRange& range = layout_.layer(layer);
    for (std::int64_t i = 0; i < range.count; ++i) {
      const float gradient =
          (difference_at(range.first + i) +
           noise_[at(micro_step)] * 1e-3f * static_cast<float>((range.first + i) % 13 - 6)) *
          static_cast<float>(gradient_scale);
      const std::uint16_t rounded = float16_from_float(kind_, gradient);
      if (into.values_16bit != nullptr) {
        into.values_16bit[i] = rounded;
      } else {
        into.values_fp32[i] += float_from_float16(kind_, rounded);
      }
    }
    return ok_status();
  }

  double loss(int micro_step) const override { return losses_[at(micro_step)]; }

 private:
  static std::size_t at(int micro_step) { return static_cast<std::size_t>(micro_step); }
  float difference_at(std::int64_t i) const {
    const float pattern = static_cast<float>(i % 29 - 14) * 0.01f;
    return float_from_float16(kind_, parameters_[static_cast<std::size_t>(i)]) - pattern;
  }

  model::FlatLayout layout_;
  std::int64_t vocabulary_;
  Float16Kind kind_;
  std::span<std::uint16_t> parameters_;
  std::vector<float> noise_;
  std::vector<double> losses_;
};

inline model::ModelFactory arithmetic_factory() {
  model::ModelFactory factory;
  factory.make = [](const model::ModelShape& shape, const model::ModelOptions& options,
                    std::span<std::uint16_t> parameters) -> Result<model::BuiltModel> {
    return model::BuiltModel{std::make_unique<ArithmeticModel>(shape, options.micro_step_count,
                                                               options.compute, parameters)};
  };
  factory.memory = [](const model::ModelShape&, const model::ModelOptions&) {
    return MemoryItems{};
  };
  return factory;
}

}  // namespace sluice
