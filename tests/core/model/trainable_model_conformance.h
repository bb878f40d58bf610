#pragma once
// What the schedule relies on in every model (core/model/trainable_model.h), as cases for each
// implementation: the order of calls, gradients that are written or added and complete when
// backward returns, the same bits every time, nothing left of a step that was given up.
//
// Thread contract: as tests/conformance.h.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/float16.h"
#include "base/split_mix.h"
#include "core/model/trainable_model.h"
#include "tests/conformance.h"

namespace sluice::model {

// A model and the parameters that it reads.
struct HeldModel {
  std::vector<std::uint16_t> parameters;
  std::unique_ptr<TrainableModel> model;
};

// How the implementation at hand is made, always with the same parameters.
struct ModelMaker {
  std::int64_t vocabulary = 0;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::function<std::unique_ptr<HeldModel>(int micro_step_count)> make;
  std::int64_t target_sequence = 0;  // of a model with a decoder, or 1 of one that classifies
  std::int64_t classes = 0;          // of one that classifies
};

namespace conformance {

using Gradient = std::vector<float>;  // in flat order

// Random tokens, a pure function of the seed.
struct Tokens {
  Tokens(const ModelMaker& maker, std::uint64_t seed)
      : batch(maker.batch), sequence(maker.sequence) {
    const auto below = static_cast<std::uint64_t>(maker.vocabulary);
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(batch * sequence); ++i)
      inputs.push_back(static_cast<std::int32_t>(split_mix(2 * seed, i) % below));
    target_sequence = maker.target_sequence;
    const std::int64_t columns = view().target_columns();
    const auto answers = maker.classes > 0 ? static_cast<std::uint64_t>(maker.classes) : below;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(batch * columns); ++i) {
      targets.push_back(static_cast<std::int32_t>(split_mix(2 * seed + 1, i) % answers));
      if (target_sequence > 0 && maker.classes == 0)
        decoder_inputs.push_back(static_cast<std::int32_t>(split_mix(~seed, i) % below));
    }
  }
  TokenBatch view() const {
    return {batch, sequence, inputs, targets, 0, {}, {}, target_sequence, decoder_inputs};
  }

  std::int64_t batch;
  std::int64_t sequence;
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  std::int64_t target_sequence = 0;
  std::vector<std::int32_t> decoder_inputs;
};

inline void require_ok(const Status& status) {
  INFO((status.ok() ? std::string() : status.error().message()));
  REQUIRE(status.ok());
}

inline void forward(TrainableModel& model, const std::vector<Tokens>& micro_batches) {
  const int count = static_cast<int>(micro_batches.size());
  for (int m = 0; m < count; ++m)
    require_ok(
        model.set_batch(m, micro_batches[static_cast<std::size_t>(m)].view(), BatchUse::training));
  for (std::int32_t layer = 0; layer < model.layout().layer_count(); ++layer) {
    for (int m = 0; m < count; ++m) require_ok(model.forward(LayerId{layer}, m));
  }
}

// `from`: what stands in the memory of gradients before.
inline Gradient step_into_fp32(TrainableModel& model, const std::vector<Tokens>& micro_batches,
                               float from = 0, double gradient_scale = 1) {
  forward(model, micro_batches);
  Gradient gradient(static_cast<std::size_t>(model.layout().parameter_count), from);
  for (std::int32_t layer = model.layout().layer_count() - 1; layer >= 0; --layer) {
    const LayerRange& range = model.layout().layer(LayerId{layer});
    const LayerGradient into{.values_fp32 = gradient.data() + range.first,
                             .element_count = range.count};
    for (int m = 0; m < static_cast<int>(micro_batches.size()); ++m)
      require_ok(model.backward(LayerId{layer}, m, gradient_scale, into));
  }
  return gradient;
}

// A layer's gradients as they stand when its backward returns: the next layer's go to the same
// memory, as those of the schedule do, which has two layers' worth. On either side of a layer lies
// memory that is not its own.
inline std::vector<std::uint16_t> step_into_16bit(TrainableModel& model, const Tokens& batch,
                                                  std::uint16_t from = 0x7fff,
                                                  double gradient_scale = 1) {
  constexpr std::size_t kFence = 64;
  constexpr std::uint16_t kFenceValue = 0x1234;
  forward(model, {batch});
  std::vector<std::uint16_t> all(static_cast<std::size_t>(model.layout().parameter_count));
  std::vector<std::uint16_t> memory;
  for (std::int32_t layer = model.layout().layer_count() - 1; layer >= 0; --layer) {
    const LayerRange& range = model.layout().layer(LayerId{layer});
    const auto count = static_cast<std::size_t>(range.count);
    if (memory.size() < count + 2 * kFence) memory.resize(count + 2 * kFence);
    std::ranges::fill(memory, kFenceValue);
    const std::span<std::uint16_t> own = std::span(memory).subspan(kFence, count);
    std::ranges::fill(own, from);
    require_ok(model.backward(LayerId{layer}, 0, gradient_scale,
                              {.values_16bit = own.data(), .element_count = range.count}));
    std::ranges::copy(own, all.begin() + range.first);
    std::ranges::fill(own, kFenceValue);
    CHECK(std::ranges::count(memory, kFenceValue) == std::ssize(memory));
  }
  return all;
}

inline Gradient widened(TrainableModel& model, const std::vector<std::uint16_t>& values) {
  Gradient wide;
  for (const std::uint16_t value : values)
    wide.push_back(float_from_float16(float16_kind(model.parameter_kind()), value));
  return wide;
}

// |a - b| / |b|.
inline double distance(const Gradient& a, const Gradient& b) {
  double difference = 0;
  double length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    length += double{b[i]} * b[i];
  }
  REQUIRE(length > 0);
  return std::sqrt(difference / length);
}

// Sums that are rounded in another order; 16-bit rounding of a sum and of its parts.
constexpr double kRounding = 0.02;

inline void check_layout(const ModelMaker& maker) {
  const auto held = maker.make(1);
  const FlatLayout& layout = held->model->layout();
  CHECK(held->model->parameters().values_16bit().data() == held->parameters.data());
  CHECK(std::ssize(held->model->parameters()) == layout.parameter_count);
  std::int64_t next = 0;
  for (std::int32_t layer = 0; layer < layout.layer_count(); ++layer) {
    CHECK(layout.layer(LayerId{layer}).first == next);
    next += layout.layer(LayerId{layer}).count;
  }
  CHECK(next == layout.parameter_count);
}

inline void check_repeatable(const ModelMaker& maker) {
  const Tokens tokens(maker, 5);
  const auto a = maker.make(1);
  const auto b = maker.make(1);
  const std::vector<std::uint16_t> gradient = step_into_16bit(*a->model, tokens);
  const double loss = a->model->loss(0);
  CHECK(gradient == step_into_16bit(*b->model, tokens));
  CHECK(loss == b->model->loss(0));
  step_into_16bit(*a->model, Tokens(maker, 6));
  CHECK(gradient == step_into_16bit(*a->model, tokens));
  CHECK(loss == a->model->loss(0));
}

inline void check_tokens_matter(const ModelMaker& maker) {
  const auto held = maker.make(1);
  const std::vector<std::uint16_t> gradient = step_into_16bit(*held->model, Tokens(maker, 5));
  const std::vector<std::uint16_t> other = step_into_16bit(*held->model, Tokens(maker, 6));
  const FlatLayout& layout = held->model->layout();
  for (std::int32_t layer = 0; layer < layout.layer_count(); ++layer) {
    INFO("layer " << layer);
    const LayerRange& range = layout.layer(LayerId{layer});
    const auto of_layer = [&range](const std::vector<std::uint16_t>& all) {
      return std::span(all).subspan(static_cast<std::size_t>(range.first),
                                    static_cast<std::size_t>(range.count));
    };
    CHECK_FALSE(std::ranges::equal(of_layer(gradient), of_layer(other)));
  }
}

inline void check_16bit_written(const ModelMaker& maker) {
  const Tokens tokens(maker, 5);
  const auto held = maker.make(1);
  CHECK(step_into_16bit(*held->model, tokens, 0x7fff) ==
        step_into_16bit(*held->model, tokens, 0x0000));
}

inline void check_fp32_added(const ModelMaker& maker) {
  const Tokens tokens(maker, 5);
  const auto held = maker.make(1);
  const Gradient from_zero = step_into_fp32(*held->model, {tokens});
  Gradient from_one = step_into_fp32(*held->model, {tokens}, 1.0f);
  for (std::size_t i = 0; i < from_one.size(); ++i) {
    INFO("element " << i);
    REQUIRE(std::abs(from_one[i] - (1.0f + from_zero[i])) <= 1e-6f * (1 + std::abs(from_one[i])));
  }
  CHECK(distance(widened(*held->model, step_into_16bit(*held->model, tokens)), from_zero) <
        kRounding);
}

inline void check_accumulation(const ModelMaker& maker) {
  const std::vector<Tokens> tokens = {Tokens(maker, 5), Tokens(maker, 6), Tokens(maker, 7)};
  const auto of_one = maker.make(1);
  const auto of_three = maker.make(3);
  const Gradient together = step_into_fp32(*of_three->model, tokens);
  Gradient sum(together.size(), 0.0f);
  for (std::size_t m = 0; m < tokens.size(); ++m) {
    const Gradient part = step_into_fp32(*of_one->model, {tokens[m]});
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    CHECK(of_three->model->loss(static_cast<int>(m)) == of_one->model->loss(0));
  }
  CHECK(distance(together, sum) < kRounding);
  CHECK(together == step_into_fp32(*of_three->model, tokens));
}

inline void check_gradient_scale(const ModelMaker& maker) {
  const Tokens tokens(maker, 5);
  const auto held = maker.make(1);
  const Gradient once = widened(*held->model, step_into_16bit(*held->model, tokens));
  const double loss = held->model->loss(0);
  Gradient eightfold = widened(*held->model, step_into_16bit(*held->model, tokens, 0x7fff, 8));
  CHECK(held->model->loss(0) == loss);
  for (float& value : eightfold) value /= 8;
  CHECK(distance(eightfold, once) < kRounding);
}

inline void check_parameters_read(const ModelMaker& maker) {
  const Tokens tokens(maker, 5);
  const auto held = maker.make(1);
  const auto other = maker.make(1);
  const std::vector<std::uint16_t> before = step_into_16bit(*held->model, tokens);
  // As the offload does: updated parameters of both models come back in place, of one after a step.
  for (HeldModel* each : {held.get(), other.get()}) {
    for (std::uint16_t& value : each->parameters) {
      const Float16Kind kind = float16_kind(each->model->parameter_kind());
      value = float16_from_float(kind, 0.75f * float_from_float16(kind, value));
    }
  }
  const std::vector<std::uint16_t> after = step_into_16bit(*held->model, tokens);
  CHECK(after != before);
  CHECK(after == step_into_16bit(*other->model, tokens));
}

inline void check_parameters_kept(const ModelMaker& maker) {
  const Tokens tokens(maker, 5);
  const auto held = maker.make(1);
  const std::vector<std::uint16_t> before = held->parameters;
  step_into_16bit(*held->model, tokens);
  REQUIRE(evaluate(*held->model, tokens.view()).ok());
  CHECK(held->parameters == before);
}

inline void check_evaluate(const ModelMaker& maker) {
  const Tokens tokens(maker, 5);
  const Tokens others(maker, 6);
  const auto held = maker.make(1);
  const std::vector<std::uint16_t> gradient = step_into_16bit(*held->model, tokens);
  const Result<double> first = evaluate(*held->model, others.view());
  REQUIRE(first.ok());
  CHECK(std::isfinite(*first));
  CHECK(step_into_16bit(*held->model, tokens) == gradient);
  const Result<double> second = evaluate(*held->model, others.view());
  REQUIRE(second.ok());
  CHECK(*second == *first);
}

inline void check_given_up(const ModelMaker& maker) {
  const Tokens tokens(maker, 5);
  const Tokens others(maker, 6);
  const auto held = maker.make(1);
  TrainableModel& model = *held->model;
  const std::vector<std::uint16_t> expected = step_into_16bit(model, tokens);
  const std::int32_t layer_count = model.layout().layer_count();
  // After N calls: in the middle of forward, and behind each layer's backward but the last.
  for (std::int32_t calls = 1; calls < 2 * layer_count; ++calls) {
    INFO("given up after " << calls << " calls");
    require_ok(model.set_batch(0, others.view(), BatchUse::training));
    for (std::int32_t layer = 0; layer < std::min(calls, layer_count); ++layer)
      require_ok(model.forward(LayerId{layer}, 0));
    for (std::int32_t done = 0; done < calls - layer_count; ++done) {
      const LayerId layer{layer_count - 1 - done};
      Gradient thrown_away(static_cast<std::size_t>(model.layout().layer(layer).count));
      require_ok(model.backward(
          layer, 0, 1,
          {.values_fp32 = thrown_away.data(), .element_count = std::ssize(thrown_away)}));
    }
    CHECK(step_into_16bit(model, tokens) == expected);
  }
}

inline void check_foreign_tokens(const ModelMaker& maker) {
  const auto held = maker.make(1);
  const Tokens tokens(maker, 5);
  const std::vector<std::uint16_t> expected = step_into_16bit(*held->model, tokens);
  for (const std::int64_t token : {maker.vocabulary, std::int64_t{-1}}) {
    Tokens foreign = tokens;
    foreign.inputs.back() = static_cast<std::int32_t>(token);
    const Status status = held->model->set_batch(0, foreign.view(), BatchUse::training);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code() == ErrorCode::config);
    CHECK_THAT(status.error().message(), Catch::Contains("token " + std::to_string(token)));
  }
  CHECK(step_into_16bit(*held->model, tokens) == expected);
}

inline void check_other_thread(const ModelMaker& maker) {
  const Tokens tokens(maker, 5);
  const auto here = maker.make(1);
  const auto there = maker.make(1);
  const std::vector<std::uint16_t> expected = step_into_16bit(*here->model, tokens);
  std::vector<std::uint16_t> gradient;
  std::thread([&] { gradient = step_into_16bit(*there->model, tokens); }).join();
  CHECK(gradient == expected);
}

}  // namespace conformance

inline std::vector<ConformanceCase<ModelMaker>> trainable_model_cases() {
  using namespace conformance;
  return {
      {"parameters are the caller's, and layers are all of them in order", check_layout},
      {"the same batch gives the same bits, here and in another model", check_repeatable},
      {"every layer's gradient depends on the tokens", check_tokens_matter},
      {"16-bit gradients are written, whatever stood there, and nothing beside them",
       check_16bit_written},
      {"fp32 gradients are added to what stands there", check_fp32_added},
      {"micro-batches add up, and each has its own loss", check_accumulation},
      {"gradients are those of the loss times the scale", check_gradient_scale},
      {"parameters are read where they are written, at the next forward", check_parameters_read},
      {"parameters are only read", check_parameters_kept},
      {"evaluate leaves the steps around it alone", check_evaluate},
      {"a step that was given up leaves nothing behind", check_given_up},
      {"a token that the vocabulary does not have is refused", check_foreign_tokens},
      {"the compute thread need not be the one that made the model", check_other_thread},
  };
}

}  // namespace sluice::model
