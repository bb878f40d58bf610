#pragma once
// A subgroup with split state as the kernels take it: subgroup.h's, its arrays encoded.
//
// Thread contract: test-only; one thread an object.

#include <vector>

#include "core/optimizer/split_update.h"
#include "hls/kernels/split_update.h"
#include "tests/hls/kernels/subgroup.h"

namespace sluice::hls_kernels {

// What the arrays hold: codes of values as they are in training; those of any bits, NaN among
// them; any bytes.
enum class Codes { ordinary, of_any_bits, any_bytes };

struct SplitSpec {
  SubgroupSpec plain;
  sluice::StateFormat format = {StateFormatKind::compact, 16};
  Codes codes = Codes::ordinary;
  std::int64_t first_flat_index = 0;
};

inline std::uint32_t kernel_format(const sluice::StateFormat& format) {
  if (format.kind == StateFormatKind::exact) return kStateExact;
  return format.remainder_bits == 8 ? kStateCompact8 : kStateCompact16;
}

struct SplitSubgroup {
  explicit SplitSubgroup(const SplitSpec& of)
      : spec(of), plain(of.plain), arrays(optimizer::stored_arrays(of.plain.rule, of.format)) {
    rounding = CodeRounding::of_step(spec.plain.seed * 0x9E3779B97F4A7C15u, 3);
    for (std::int32_t a = 0; a < arrays.count; ++a) stored.push_back(words_for(bytes_of(a)));
    if (spec.codes == Codes::any_bytes) {
      fill_with_bytes();
      return;
    }
    std::vector<std::span<const float>> values;
    for (const std::vector<Word>& array : plain.state) {
      values.emplace_back(as<float>(array), static_cast<std::size_t>(element_count()));
    }
    encode(values, CodeRounding::nearest(), spec.first_flat_index, span());
  }

  std::int64_t element_count() const { return spec.plain.element_count; }
  std::int64_t bytes_of(std::int32_t array) const {
    return array_bytes(arrays.codes[static_cast<std::size_t>(array)], element_count());
  }
  std::span<const std::byte> bytes(std::int32_t array) const {
    return {as<std::byte>(stored[static_cast<std::size_t>(array)]),
            static_cast<std::size_t>(bytes_of(array))};
  }
  StoredSpan span() {
    StoredSpan span{.arrays = arrays, .element_count = element_count()};
    for (std::size_t a = 0; a < stored.size(); ++a) span.data[a] = as<std::byte>(stored[a]);
    return span;
  }
  SplitSize size() const {
    const UpdateSize size = plain.size();
    return {size.element_count, size.gradient_words, size.gradient_format,
            kernel_format(spec.format)};
  }
  SplitRounding kernel_rounding() const {
    return {static_cast<std::uint64_t>(spec.first_flat_index), rounding.key()};
  }

  SplitSpec spec;
  Subgroup plain;  // the gradient, scalars, result
  StoredArrays arrays;
  CodeRounding rounding;
  std::vector<std::vector<Word>> stored;

 private:
  // A scale of squares has no sign: the definition has no value for one.
  void fill_with_bytes() {
    std::mt19937_64 random(spec.plain.seed);
    for (std::size_t a = 0; a < stored.size(); ++a) {
      for (Word& word : stored[a]) {
        for (int lane = 0; lane < kLanes; ++lane) {
          word[static_cast<std::size_t>(lane)] = static_cast<std::uint32_t>(random());
        }
      }
      if (arrays.codes[a] != ArrayCode::square8) continue;
      for (std::int64_t group = 0; group * kGroupElements < element_count(); ++group) {
        const GroupPlace place = place_of_group(arrays.codes[a], group, element_count());
        as<std::byte>(stored[a])[place.scale_bytes + 3] &= std::byte{0x7f};
      }
    }
  }
};

// The kernel of the subgroup's rule, as the host calls it.
inline void run_kernel(SplitSubgroup& of) {
  const Word* gradient = of.plain.gradient.data();
  Word* result = of.plain.result.data();
  const auto at = [&of](std::size_t array) { return of.stored[array].data(); };
  const SplitSize s = of.size();
  const SplitRounding r = of.kernel_rounding();
  if (const auto* a = std::get_if<optimizer::AdamWScalars>(&of.plain.scalars)) {
    update_adamw_split(gradient, gradient, gradient, at(0), at(0), at(1), at(1), at(2), at(2),
                       at(3), at(3), result, s.element_count, s.gradient_words, s.gradient_format,
                       s.state_format, r.first_flat_index, r.key, a->grad_scale, a->beta1,
                       a->one_minus_beta1, a->beta2, a->one_minus_beta2, a->decay,
                       a->minus_step_size, a->inverse_sqrt_bias2, a->eps);
  } else if (const auto* b = std::get_if<optimizer::SgdScalars>(&of.plain.scalars)) {
    update_sgd_split(gradient, gradient, gradient, at(0), at(0), at(1), at(1), at(2), at(2), result,
                     s.element_count, s.gradient_words, s.gradient_format, s.state_format,
                     r.first_flat_index, r.key, b->grad_scale, b->weight_decay, b->momentum,
                     b->minus_lr);
  } else {
    const auto& c = std::get<optimizer::AdaGradScalars>(of.plain.scalars);
    update_adagrad_split(gradient, gradient, gradient, at(0), at(0), at(1), at(1), at(2), at(2),
                         result, s.element_count, s.gradient_words, s.gradient_format,
                         s.state_format, r.first_flat_index, r.key, c.grad_scale, c.weight_decay,
                         c.minus_lr, c.eps);
  }
}

template <class Rule>
void run_rule(const Rule& rule, SplitSubgroup& of) {
  const Word* gradient = of.plain.gradient.data();
  const auto at = [&of](std::size_t array) {
    return array < of.stored.size() ? of.stored[array].data() : nullptr;
  };
  split_subgroup(rule, of.size(), of.kernel_rounding(), gradient, gradient, gradient, at(0), at(0),
                 at(1), at(1), at(2), at(2), at(3), at(3), of.plain.result.data());
}

}  // namespace sluice::hls_kernels
