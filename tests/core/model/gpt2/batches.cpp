#include "tests/core/model/gpt2/batches.h"

#include <catch2/catch.hpp>

#include "base/float16.h"
#include "base/split_mix.h"

namespace sluice::model {
namespace {

void require_ok(const Status& status) {
  INFO((status.ok() ? std::string() : status.error().message()));
  REQUIRE(status.ok());
}

}  // namespace

Batch::Batch(std::int64_t rows, std::int64_t columns, std::int64_t vocabulary, std::uint64_t seed)
    : batch(rows), sequence(columns) {
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    const auto below = static_cast<std::uint64_t>(vocabulary);
    inputs.push_back(static_cast<std::int32_t>(split_mix(2 * seed, index) % below));
    targets.push_back(static_cast<std::int32_t>(split_mix(2 * seed + 1, index) % below));
  }
}

std::vector<float> make_weights(const ModelShape& shape, double weight_scale) {
  const FlatLayout layout = shape.flat_layout();
  std::vector<float> values(static_cast<std::size_t>(layout.parameter_count));
  fill_initial(layout, 1, 0, values);
  for (const TensorInfo& tensor : layout.tensors) {
    if (tensor.init != TensorInfo::Init::normal) continue;
    for (std::int64_t i = tensor.first; i < tensor.first + tensor.count; ++i) {
      values[i] = static_cast<float>(weight_scale * values[i]);
    }
  }
  return values;
}

std::vector<std::uint16_t> make_parameters(const ModelShape& shape, Float16Kind kind,
                                           double weight_scale) {
  std::vector<std::uint16_t> parameters;
  for (const float value : make_weights(shape, weight_scale)) {
    parameters.push_back(float16_from_float(kind, value));
  }
  return parameters;
}

BuiltModel make_on_host(const ModelShape& shape, const ModelOptions& options,
                        std::span<std::uint16_t> parameters) {
  return make_on_host(shape, options, ParameterSpan(parameters, float16_kind(options.compute)));
}

BuiltModel make_on_host(const ModelShape& shape, const ModelOptions& options,
                        const ParameterSpan& parameters) {
  Result<BuiltModel> built = host_factory().make(shape, options, parameters);
  REQUIRE(built.ok());
  return std::move(*built);
}

Gpt2Run::Gpt2Run(const ModelShape& shape, const ModelOptions& options, double weight_scale) {
  if (has_16_bits(options.compute)) {
    parameters = make_parameters(shape, float16_kind(options.compute), weight_scale);
  } else {
    parameters_fp32 = make_weights(shape, weight_scale);
  }
  BuiltModel built = has_16_bits(options.compute)
                         ? make_on_host(shape, options, parameters)
                         : make_on_host(shape, options, ParameterSpan(parameters_fp32));
  model = std::move(built.model);
  write_text = std::move(built.write_text);
}

void Gpt2Run::forward(const std::vector<Batch>& micro_batches) {
  const auto count = static_cast<int>(micro_batches.size());
  for (int m = 0; m < count; ++m) {
    require_ok(
        model->set_batch(m, micro_batches[static_cast<std::size_t>(m)].view(), BatchUse::training));
  }
  for (std::int32_t layer = 0; layer < model->layout().layer_count(); ++layer) {
    for (int m = 0; m < count; ++m) require_ok(model->forward(LayerId{layer}, m));
  }
}

std::vector<float> Gpt2Run::step(const std::vector<Batch>& micro_batches, double gradient_scale) {
  forward(micro_batches);
  std::vector<float> gradient(static_cast<std::size_t>(model->layout().parameter_count), 0.0f);
  for (std::int32_t layer = model->layout().layer_count() - 1; layer >= 0; --layer) {
    const LayerRange& range = model->layout().layer(LayerId{layer});
    const LayerGradient into{.values_fp32 = gradient.data() + range.first,
                             .element_count = range.count};
    for (int m = 0; m < static_cast<int>(micro_batches.size()); ++m) {
      require_ok(model->backward(LayerId{layer}, m, gradient_scale, into));
    }
  }
  return gradient;
}

std::vector<float> Gpt2Run::step_16bit(const Batch& batch, double gradient_scale) {
  forward({batch});
  // Not zero before: everything must be written.
  std::vector<std::uint16_t> gradient(parameters.size(), 0x7fff);
  for (std::int32_t layer = model->layout().layer_count() - 1; layer >= 0; --layer) {
    const LayerRange& range = model->layout().layer(LayerId{layer});
    require_ok(model->backward(
        LayerId{layer}, 0, gradient_scale,
        {.values_16bit = gradient.data() + range.first, .element_count = range.count}));
  }
  std::vector<float> wide;
  for (const std::uint16_t value : gradient) {
    wide.push_back(float_from_float16(float16_kind(model->parameter_kind()), value));
  }
  return wide;
}

Result<std::string> Gpt2Run::text(const SampleOptions& options) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<TextWriter> writer, write_text(options));
  while (!writer->is_done()) {
    for (std::int32_t layer = 0; layer < model->layout().layer_count(); ++layer) {
      RETURN_IF_ERROR(writer->forward(LayerId{layer}));
    }
  }
  return writer->text();
}

}  // namespace sluice::model
