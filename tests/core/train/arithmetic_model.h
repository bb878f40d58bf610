#pragma once
// A TrainableModel of plain arithmetic: no libtorch, so the whole training loop runs under the
// sanitizers. Its gradients depend on every parameter and every token, through a formula that is
// done in one order; it learns, slowly, to bring its parameters to a fixed pattern. What an
// offloaded layer keeps is what its backward computes from, and leaves memory as blocks.

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/float16.h"
#include "base/id_vector.h"
#include "core/model/model_factory.h"
#include "core/model/trainable_model.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice {

// Parameters of a loop in memory, made of its master weights one by one.
class PlainParameters {
 public:
  PlainParameters(std::size_t count, ParameterKind kind)
      : bytes_(count * static_cast<std::size_t>(bytes_of(kind))),
        all_(bytes_.data(), static_cast<std::int64_t>(count), kind) {}
  PlainParameters(const PlainParameters&) = delete;
  PlainParameters& operator=(const PlainParameters&) = delete;

  const ParameterSpan& all() const { return all_; }
  void put(const std::vector<float>& master_weights) {
    for (std::size_t i = 0; i < master_weights.size(); ++i) {
      if (has_16_bits(all_.kind())) {
        const Float16Kind kind = float16_kind(all_.kind());
        all_.values_16bit()[i] = float16_from_float(kind, master_weights[i]);
      } else {
        all_.values_fp32()[i] = master_weights[i];
      }
    }
  }

 private:
  std::vector<std::byte> bytes_;
  ParameterSpan all_;
};

class ArithmeticModel final : public model::TrainableModel, private model::KeptBlocks {
 public:
  ArithmeticModel(const model::ModelShape& shape, int micro_step_count,
                  const ParameterSpan& parameters, model::LayerActivations activations = {})
      : layout_(shape.flat_layout()),
        vocabulary_(shape.vocabulary),
        parameters_(parameters),
        has_16_bits_(has_16_bits(parameters.kind())),
        kind_(has_16_bits_ ? float16_kind(parameters.kind()) : Float16Kind::bf16),
        activations_(std::move(activations)),
        kept_(shape.flat_layout().layers.size() * static_cast<std::size_t>(micro_step_count)),
        noise_(static_cast<std::size_t>(micro_step_count)),
        losses_(static_cast<std::size_t>(micro_step_count)) {}

  const model::FlatLayout& layout() const override { return layout_; }
  ParameterKind parameter_kind() const override { return parameters_.kind(); }
  ParameterSpan parameters() override { return parameters_; }

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
    for (const LayerId layer : all_ids<LayerId>(layout_.layer_count()))
      kept_at(layer, micro_step) = {};
    return ok_status();
  }

  Status forward(LayerId layer, int micro_step) override {
    if (index_of(layer) == 0) losses_[at(micro_step)] = 0;
    const model::LayerRange& range = layout_.layer(layer);
    double sum = 0;
    for (std::int64_t i = 0; i < range.count; ++i) {
      const double difference = difference_at(range.first + i);
      sum += difference * difference;
    }
    losses_[at(micro_step)] += sum / static_cast<double>(layout_.parameter_count);
    return keep(layer, micro_step);
  }

  Status backward(LayerId layer, int micro_step, double gradient_scale,
                  const model::LayerGradient& into) override {
    const model::LayerRange& range = layout_.layer(layer);
    const Kept& kept = kept_at(layer, micro_step);
    const float* differences = kept.values(0);
    const float noise = (is_kept(layer) ? *kept.values(1) : noise_[at(micro_step)]) * 1e-3f;
    const auto scale = static_cast<float>(gradient_scale);
    for (std::int64_t i = 0; i < range.count; ++i) {
      const float gradient =
          ((differences != nullptr ? differences[i] : difference_at(range.first + i)) +
           noise * (static_cast<float>(static_cast<std::uint32_t>(range.first + i) % 13) - 6.0f)) *
          scale;
      if (!has_16_bits_) {
        into.values_fp32[i] += gradient;
        continue;
      }
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

  Status choose_activations(const model::LayerActivations& activations) override {
    activations_ = activations;
    return ok_status();
  }
  model::KeptBlocks* kept_blocks() override { return this; }

 private:
  // The differences of a layer that is not recomputed, and the noise. What is away is not there: a
  // backward that does not wait for it reads address 0.
  struct Kept {
    std::array<io::PageAlignedBuffer, 2> buffers;
    std::array<std::int64_t, 2> size_bytes{};
    std::vector<model::KeptBlock> blocks;
    const float* values(std::size_t i) const {
      return reinterpret_cast<const float*>(buffers[i].bytes().data());
    }
  };
  // The embedding keeps nothing (core/model/kept_bytes.h).
  bool is_kept(LayerId layer) const {
    return index_of(layer) > 0 && model::is_offloaded(activations_.of(layer));
  }
  Kept& kept_at(LayerId layer, int micro_step) {
    return kept_[static_cast<std::size_t>(index_of(layer)) * noise_.size() + at(micro_step)];
  }

  Status keep(LayerId layer, int micro_step) {
    if (!is_kept(layer)) return ok_status();
    const model::LayerRange& range = layout_.layer(layer);
    Kept& kept = kept_at(layer, micro_step);
    if (!model::is_recomputed(activations_.of(layer))) kept.size_bytes[0] = range.count * 4;
    kept.size_bytes[1] = 4;
    RETURN_IF_ERROR(take(kept));
    for (std::int64_t i = 0; kept.size_bytes[0] > 0 && i < range.count; ++i)
      reinterpret_cast<float*>(kept.buffers[0].bytes().data())[i] = difference_at(range.first + i);
    std::memcpy(kept.buffers[1].bytes().data(), &noise_[at(micro_step)], 4);
    return ok_status();
  }
  static Status take(Kept& kept) {
    kept.blocks.clear();
    for (std::size_t i = 0; i < kept.buffers.size(); ++i) {
      if (kept.size_bytes[i] == 0) continue;
      ASSIGN_OR_RETURN(kept.buffers[i], io::PageAlignedBuffer::allocate(kept.size_bytes[i]));
      kept.blocks.push_back({kept.buffers[i].bytes().data(), kept.size_bytes[i]});
    }
    return ok_status();
  }

  Result<std::span<const model::KeptBlock>> kept(LayerId layer, int micro_step) override {
    return std::span<const model::KeptBlock>(kept_at(layer, micro_step).blocks);
  }
  Status release(LayerId layer, int micro_step) override {
    kept_at(layer, micro_step).buffers = {};
    return ok_status();
  }
  Status release_device(LayerId /*layer*/, int /*micro_step*/) override { return ok_status(); }
  Result<std::span<const model::KeptBlock>> make_room(LayerId layer, int micro_step) override {
    RETURN_IF_ERROR(take(kept_at(layer, micro_step)));
    return kept(layer, micro_step);
  }
  Status restore(LayerId /*layer*/, int /*micro_step*/) override { return ok_status(); }
  void forget(LayerId layer, int micro_step) override { kept_at(layer, micro_step) = {}; }

  static std::size_t at(int micro_step) { return static_cast<std::size_t>(micro_step); }
  // 32 bits: the remainder is most of what a parameter costs, and suites train many.
  float difference_at(std::int64_t i) const {
    const float pattern = (static_cast<float>(static_cast<std::uint32_t>(i) % 29) - 14.0f) * 0.01f;
    return value_at(i) - pattern;
  }
  float value_at(std::int64_t i) const {
    if (!has_16_bits_) return reinterpret_cast<const float*>(parameters_.data())[i];
    return float_from_float16(kind_, reinterpret_cast<const std::uint16_t*>(parameters_.data())[i]);
  }

  model::FlatLayout layout_;
  std::int64_t vocabulary_;
  ParameterSpan parameters_;
  bool has_16_bits_;
  Float16Kind kind_;  // where they have
  model::LayerActivations activations_;
  std::vector<Kept> kept_;  // by layer and micro-batch
  std::vector<float> noise_;
  std::vector<double> losses_;
};

inline model::ModelFactory arithmetic_factory() {
  model::ModelFactory factory;
  factory.make = [](const model::ModelShape& shape, const model::ModelOptions& options,
                    const ParameterSpan& parameters) -> Result<model::BuiltModel> {
    return model::BuiltModel{std::make_unique<ArithmeticModel>(shape, options.micro_step_count,
                                                               parameters, options.activations)};
  };
  factory.memory = [](const model::ModelShape&, const model::ModelOptions&) {
    return MemoryItems{};
  };
  return factory;
}

}  // namespace sluice
