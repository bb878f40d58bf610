#pragma once
// A subgroup as the kernels take it, and the same one as the host's code does: made of a seed, with
// whatever gradient and output a kernel knows.
//
// Thread contract: test-only; one thread an object.

#include <cstring>
#include <random>
#include <vector>

#include "base/float16.h"
#include "core/compress/sparse_gradient.h"
#include "core/optimizer/update_rule.h"
#include "hls/kernels/kernels.h"
#include "hls/kernels/update.h"

namespace sluice::hls_kernels {

inline constexpr std::int64_t kTile = kTileElements;

inline constexpr optimizer::RuleKind kRules[] = {
    optimizer::RuleKind::adamw, optimizer::RuleKind::sgd, optimizer::RuleKind::adagrad};
inline constexpr optimizer::GradientKind kKinds[] = {
    optimizer::GradientKind::fp32, optimizer::GradientKind::bf16, optimizer::GradientKind::fp16};

enum class Arithmetic { of_the_kernel, integer, threads };
enum class Values { ordinary, any_bits };  // as in training; every bit pattern, NaN among them

struct SubgroupSpec {
  optimizer::RuleKind rule = optimizer::RuleKind::adamw;
  std::int64_t element_count = 1;
  bool is_sparse = false;
  optimizer::GradientKind gradient_kind = optimizer::GradientKind::fp32;
  std::uint32_t parameter_format = kParametersBf16;
  double density = 0.05;
  Values values = Values::ordinary;
  std::uint64_t seed = 1;
};

inline std::vector<Word> words_for(std::int64_t bytes) {
  return std::vector<Word>(static_cast<std::size_t>((bytes + kWordBytes - 1) / kWordBytes),
                           Word(0u));
}
template <typename T>
T* as(std::vector<Word>& words) {
  return reinterpret_cast<T*>(words.data());
}
template <typename T>
const T* as(const std::vector<Word>& words) {
  return reinterpret_cast<const T*>(words.data());
}

// What a kernel's pointers are given. The third state array is null where the rule has two.
struct UpdatePorts {
  const Word* gradient;
  const Word* counts;
  const Word* indices;
  const Word* state0_in;
  Word* state0_out;
  const Word* state1_in;
  Word* state1_out;
  const Word* state2_in;
  Word* state2_out;
  Word* parameters;
  Word* result;
};

struct Subgroup {
  explicit Subgroup(const SubgroupSpec& of) : spec(of) {
    std::mt19937_64 random(spec.seed);
    optimizer::UpdateOptions options = optimizer::default_options(spec.rule);
    options.weight_decay = 0.01;
    scalars = optimizer::update_scalars(options, 3, 0.125);
    state_count = optimizer::rule_info(spec.rule).state_count();
    for (int v = 0; v < state_count; ++v) {
      state.push_back(words_for(4 * spec.element_count));
      fill(random, as<float>(state.back()), v == state_count - 1);
    }
    dense.resize(static_cast<std::size_t>(spec.element_count));
    fill(random, dense.data(), false);
    make_gradient(random);
    parameters = words_for(4 * spec.element_count);
    result = std::vector<Word>(kResultWords, Word(0u));
  }

  std::uint32_t gradient_format() const {
    return spec.is_sparse ? std::uint32_t{kGradientSparse}
                          : static_cast<std::uint32_t>(spec.gradient_kind);
  }
  UpdateSize size() const {
    return {static_cast<std::uint64_t>(spec.element_count), gradient.size(), gradient_format(),
            spec.parameter_format};
  }
  UpdatePorts ports() {
    const auto third = [this] { return state_count == 3 ? state[2].data() : nullptr; };
    return {gradient.data(), gradient.data(),   gradient.data(), state[0].data(),
            state[0].data(), state[1].data(),   state[1].data(), third(),
            third(),         parameters.data(), result.data()};
  }

  SubgroupSpec spec;
  optimizer::UpdateScalars scalars;
  int state_count = 0;
  std::vector<std::vector<Word>> state;
  std::vector<float> dense;  // what the gradient comes to
  std::vector<Word> gradient;
  std::vector<Word> parameters;
  std::vector<Word> result;

 private:
  void fill(std::mt19937_64& random, float* values, bool is_square) const {
    std::normal_distribution<float> normal(0.0f, is_square ? 1e-3f : 0.05f);
    for (std::int64_t i = 0; i < spec.element_count; ++i) {
      if (spec.values == Values::ordinary) {
        values[i] = is_square ? std::abs(normal(random)) : normal(random);
      } else {
        const auto bits = static_cast<std::uint32_t>(random());
        // Every eighth is at the edges: zeros, subnormals, infinities, NaN.
        const std::uint32_t edges[] = {0,          1,          0x7fffff,  0x800000,
                                       0x7f7fffff, 0x7f800000, 0x7fc00001};
        const std::uint32_t chosen =
            bits % 8 == 0 ? edges[bits / 8 % 7] | (bits & 0x80000000u) : bits;
        std::memcpy(&values[i], &chosen, 4);
      }
    }
  }

  void make_gradient(std::mt19937_64& random) {
    if (!spec.is_sparse) {
      gradient = words_for(spec.element_count * optimizer::bytes_of(spec.gradient_kind));
      put_values(dense, as<std::byte>(gradient));
      return;
    }
    std::vector<std::uint32_t> indices;
    std::vector<float> values;
    std::bernoulli_distribution is_kept(spec.density);
    for (std::int64_t i = 0; i < spec.element_count; ++i) {
      if (!is_kept(random)) {
        dense[static_cast<std::size_t>(i)] = 0;
        continue;
      }
      indices.push_back(static_cast<std::uint32_t>(i));
      values.push_back(dense[static_cast<std::size_t>(i)]);
    }
    gradient = words_for(compress::sparse_gradient_bytes(
        spec.element_count, static_cast<std::int64_t>(indices.size()), spec.gradient_kind));
    compress::encode_sparse_gradient({indices, values}, spec.element_count, spec.gradient_kind,
                                     std::as_writable_bytes(std::span(gradient)));
  }

  // 16-bit elements are rounded; the dense copy keeps what they come to.
  void put_values(std::vector<float>& values, std::byte* to) const {
    if (spec.gradient_kind == optimizer::GradientKind::fp32) {
      std::memcpy(to, values.data(), values.size() * 4);
      return;
    }
    const Float16Kind kind =
        spec.gradient_kind == optimizer::GradientKind::bf16 ? Float16Kind::bf16 : Float16Kind::fp16;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t half = float16_from_float(kind, values[i]);
      std::memcpy(to + 2 * i, &half, 2);
    }
  }
};

// The kernel of the subgroup's rule, as the host calls it.
inline void run_kernel(Subgroup& of) {
  const UpdatePorts p = of.ports();
  const UpdateSize s = of.size();
  if (const auto* a = std::get_if<optimizer::AdamWScalars>(&of.scalars)) {
    update_adamw(p.gradient, p.counts, p.indices, p.state0_in, p.state0_out, p.state1_in,
                 p.state1_out, p.state2_in, p.state2_out, p.parameters, p.result, s.element_count,
                 s.gradient_words, s.gradient_format, s.parameter_format, a->grad_scale, a->beta1,
                 a->one_minus_beta1, a->beta2, a->one_minus_beta2, a->decay, a->minus_step_size,
                 a->inverse_sqrt_bias2, a->eps);
  } else if (const auto* b = std::get_if<optimizer::SgdScalars>(&of.scalars)) {
    update_sgd(p.gradient, p.counts, p.indices, p.state0_in, p.state0_out, p.state1_in,
               p.state1_out, p.parameters, p.result, s.element_count, s.gradient_words,
               s.gradient_format, s.parameter_format, b->grad_scale, b->weight_decay, b->momentum,
               b->minus_lr);
  } else {
    const auto& c = std::get<optimizer::AdaGradScalars>(of.scalars);
    update_adagrad(p.gradient, p.counts, p.indices, p.state0_in, p.state0_out, p.state1_in,
                   p.state1_out, p.parameters, p.result, s.element_count, s.gradient_words,
                   s.gradient_format, s.parameter_format, c.grad_scale, c.weight_decay, c.minus_lr,
                   c.eps);
  }
}

template <class Rule>
void run_rule(const Rule& rule, Subgroup& of) {
  const UpdatePorts p = of.ports();
  update_subgroup(rule, of.size(), p.gradient, p.counts, p.indices, p.state0_in, p.state0_out,
                  p.state1_in, p.state1_out, p.state2_in, p.state2_out, p.parameters, p.result);
}

// The same region with an arithmetic of the caller's choice: run_rule() takes `of`.
template <class Arithmetic, class Of>
void run_region(Of& of, const optimizer::UpdateScalars& scalars) {
  if (const auto* a = std::get_if<optimizer::AdamWScalars>(&scalars)) {
    run_rule(
        AdamW<Arithmetic>(a->grad_scale, a->beta1, a->one_minus_beta1, a->beta2, a->one_minus_beta2,
                          a->decay, a->minus_step_size, a->inverse_sqrt_bias2, a->eps),
        of);
  } else if (const auto* b = std::get_if<optimizer::SgdScalars>(&scalars)) {
    run_rule(Sgd<Arithmetic>(b->grad_scale, b->weight_decay, b->momentum, b->minus_lr), of);
  } else {
    const auto& c = std::get<optimizer::AdaGradScalars>(scalars);
    run_rule(AdaGrad<Arithmetic>(c.grad_scale, c.weight_decay, c.minus_lr, c.eps), of);
  }
}
template <class Arithmetic>
void run_region(Subgroup& of) {
  run_region<Arithmetic>(of, of.scalars);
}

}  // namespace sluice::hls_kernels
