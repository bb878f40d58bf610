// The update of split state in vectors, group by group: first the moments, kept on the stack while
// the group's maxima are taken; then the weights, and the codes of all. So a group is read and
// written once. Exact state is bound by memory, as fp32 is (update_simd.cpp); compact state moves
// half the bytes and is bound by arithmetic.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Codes are put into order by tables whose length is a vector's, and a vector's length is known but
// for SVE: there NEON is taken.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/optimizer/split_simd.cpp"
#include "hwy/foreach_target.h"
// The order matters: what follows is compiled once for each target.
#include "core/optimizer/rules-inl.h"
#include "core/optimizer/simd-inl.h"
#include "core/optimizer/split_codes-inl.h"
#include "core/optimizer/split_update.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::optimizer {
namespace HWY_NAMESPACE {

#if SLUICE_EXACT_SIMD

// How a rule's state is stored.
template <class RuleOfForm, ArrayCode kRemainderCode, ArrayCode kSecondCode,
          ArrayCode kThirdCode = ArrayCode::fp32>
struct Form {
  using Rule = RuleOfForm;
  using Scalars = typename Rule::Scalars;
  static constexpr ArrayCode kRemainder = kRemainderCode;
  static constexpr ArrayCode kSecond = kSecondCode;
  static constexpr ArrayCode kThird = kThirdCode;
  static constexpr bool kHasThird = Rule::kStateArrays == 3;
  static constexpr bool kTiesInBits = kRemainder == ArrayCode::low16_with_ties;
  static constexpr bool kTiesInSign = (kHasThird ? kThird : kSecond) == ArrayCode::fp32_with_ties;
  static constexpr bool kIsExact = kTiesInBits || kTiesInSign;
  static constexpr StoredArrays kArrays = {Rule::kStateArrays + 1,
                                           {ArrayCode::high, kRemainder, kSecond, kThird}};
};

using Group = std::array<GroupCodes, kMaxStoredArrays>;

// A group's new moments before they are encoded, and the largest bits of a magnitude.
struct Moments {
  alignas(64) float second[kGroupElements];
  alignas(64) float third[kGroupElements];
  std::uint32_t second_largest = 0;
  std::uint32_t third_largest = 0;
};

// At most as many lanes as 32 bits of ties have; a group is whole vectors.
using FloatLanes = hn::CappedTag<float, 16>;

// 1 << 16 in lanes whose copy was rounded down from a tie.
template <class Form, class D>
HWY_INLINE Lanes32<D> loaded_ties(D d, const Group& group, std::int64_t i) {
  const hn::RebindToUnsigned<D> d_bits;
  if constexpr (Form::kTiesInSign) {
    const std::byte* codes = group[Form::kHasThird ? 3 : 2].codes;
    return hn::ShiftLeft<16>(hn::ShiftRight<31>(load_codes_32bit(d, codes, i)));
  } else if constexpr (Form::kTiesInBits) {
    std::uint64_t ties;
    std::memcpy(&ties, group[1].scale, sizeof ties);
    const auto of_lanes = all(d, static_cast<std::uint32_t>(ties >> i));
    return hn::ShiftLeft<16>(hn::And(hn::Shr(of_lanes, hn::Iota(d_bits, 0)), all(d, 1u)));
  } else {
    return hn::Zero(d_bits);
  }
}

template <class D>
HWY_INLINE std::uint32_t largest_lane(D, Lanes32<D> bits) {
  const hn::RebindToUnsigned<D> d_bits;
  return hn::GetLane(hn::MaxOfLanes(d_bits, bits));
}
// With a scale NaN shows in the group's maximum, so that no lane need be asked: stored_float of
// all.
template <ArrayCode kCode>
inline constexpr bool kHasScale = kCode == ArrayCode::mean8 || kCode == ArrayCode::square8;

HWY_INLINE std::uint32_t with_stored_nans(std::uint32_t largest, float* values) {
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  if (largest <= kInfinity) return largest;
  for (std::int64_t e = 0; e < kGroupElements; ++e) values[e] = stored_float(values[e]);
  return std::bit_cast<std::uint32_t>(stored_float(std::bit_cast<float>(largest)));
}

template <class D>
HWY_INLINE Lanes32<D> larger_magnitude(D d, Lanes32<D> largest, hn::Vec<D> value) {
  return hn::Max(largest, bits_of(d, hn::Abs(value)));
}

template <class Form, class D>
HWY_INLINE hn::Vec<D> old_weight(D d, const Group& group, std::int64_t i) {
  return decoded_weight<Form::kRemainder>(d, group[0], group[1], i, loaded_ties<Form>(d, group, i));
}

template <class Form, class Gradient>
HWY_INLINE void update_moments(const typename Form::Scalars& scalars, const Group& group,
                               const typename Gradient::Element* gradient, Moments& moments) {
  const FloatLanes d;
  const std::uint32_t second_base = decoding_base<Form::kSecond>(group[2]);
  const std::uint32_t third_base = Form::kHasThird ? decoding_base<Form::kThird>(group[3]) : 0;
  auto second_largest = all(d, 0);
  auto third_largest = all(d, 0);
  for (std::int64_t i = 0; i < kGroupElements; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto of_element = Gradient::load(d, gradient + i);
    const auto weight = old_weight<Form>(d, group, i);
    auto second = decoded<Form::kSecond>(d, group[2], i, second_base);
    if constexpr (Form::kHasThird) {
      auto third = decoded<Form::kThird>(d, group[3], i, third_base);
      Form::Rule::moments(d, scalars, of_element, weight, second, third);
      if constexpr (!kHasScale<Form::kThird>) third = stored(d, third);
      third_largest = larger_magnitude(d, third_largest, third);
      hn::Store(third, d, moments.third + i);
    } else {
      Form::Rule::moments(d, scalars, of_element, weight, second);
    }
    if constexpr (!kHasScale<Form::kSecond>) second = stored(d, second);
    second_largest = larger_magnitude(d, second_largest, second);
    hn::Store(second, d, moments.second + i);
  }
  if constexpr (kHasScale<Form::kSecond>)
    moments.second_largest = with_stored_nans(largest_lane(d, second_largest), moments.second);
  if constexpr (kHasScale<Form::kThird>)
    moments.third_largest = with_stored_nans(largest_lane(d, third_largest), moments.third);
}

// `i`: of the vector's first element.
template <class Form, class Gradient>
HWY_INLINE Lanes32<FloatLanes> new_weight(const typename Form::Scalars& scalars, const Group& group,
                                          const typename Gradient::Element* gradient,
                                          const Moments& moments, std::int64_t i) {
  const FloatLanes d;
  const auto of_element = Gradient::load(d, gradient + i);
  const auto old = old_weight<Form>(d, group, i);
  const auto second = hn::Load(d, moments.second + i);
  if constexpr (Form::kHasThird) {
    const auto third = hn::Load(d, moments.third + i);
    return bits_of(d, stored(d, Form::Rule::weight(d, scalars, of_element, old, second, third)));
  } else {
    return bits_of(d, stored(d, Form::Rule::weight(d, scalars, of_element, old, second)));
  }
}

// `hash_start`: of the group's first element, its flat index times kHashStride, and the key.
// Roots and quotients of the weights take long, so that they are begun first and encoded last.
template <class Form, class Gradient>
HWY_INLINE void update_weights_and_encode(const typename Form::Scalars& scalars,
                                          const typename Gradient::Element* gradient,
                                          const Moments& moments, std::uint32_t hash_start,
                                          const Group& group) {
  const FloatLanes d;
  const hn::RebindToUnsigned<FloatLanes> d_bits;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto lane_strides = hn::Mul(hn::Iota(d_bits, 0), all(d, kHashStride));
  std::uint64_t ties = 0;
  for (std::int64_t i = 0; i < kGroupElements; i += 4 * lanes) {
    const auto weights = four(d, [&](std::int64_t vector) HWY_ATTR {
      return new_weight<Form, Gradient>(scalars, group, gradient, moments, i + vector * lanes);
    });
    Four<FloatLanes> hash;
    Four<FloatLanes> tie;
    if constexpr (Form::kIsExact) {
      tie = encode_exact_weights(d, weights, group[0], group[1], i);
      if constexpr (Form::kTiesInBits) ties |= bits_of_signs(d, tie) << i;
    } else {
      const auto first =
          hn::Add(all(d, hash_start + static_cast<std::uint32_t>(i) * kHashStride), lane_strides);
      hash = four(d, [&](std::int64_t vector) HWY_ATTR {
        const auto before = static_cast<std::uint32_t>(vector * lanes) * kHashStride;
        return mixed_lanes(d, hn::Add(first, all(d, before)));
      });
    }
    encode<Form::kSecond>(d, moments.second, moments.second_largest, hash, tie, group[2], i);
    if constexpr (Form::kHasThird)
      encode<Form::kThird>(d, moments.third, moments.third_largest, hash, tie, group[3], i);
    if constexpr (!Form::kIsExact)
      encode_compact_weights<Form::kRemainder>(d, weights, hash, group[0], group[1], i);
  }
  if constexpr (Form::kTiesInBits) std::memcpy(group[1].scale, &ties, sizeof ties);
  encode_scale<Form::kSecond>(moments.second_largest, group[2]);
  if constexpr (Form::kHasThird) encode_scale<Form::kThird>(moments.third_largest, group[3]);
}

// `group`, which begins a block.
HWY_INLINE Group first_of_block(const StoredSpan& state, std::int64_t group) {
  Group first;
  for (std::size_t a = 0; a < static_cast<std::size_t>(state.arrays.count); ++a) {
    const GroupPlace place = place_of_group(state.arrays.codes[a], group, state.element_count);
    first[a] = {state.data[a] + place.codes_bytes, state.data[a] + place.scale_bytes};
  }
  return first;
}
template <class Form>
HWY_INLINE void move_to_next(Group& group) {
  for (std::size_t a = 0; a < static_cast<std::size_t>(Form::kArrays.count); ++a) {
    const ArrayWidth width = width_of(Form::kArrays.codes[a]);
    group[a].codes += kGroupElements * width.element_bytes;
    group[a].scale += width.group_bytes;
  }
}

// Groups whose moments are updated before the first of them is encoded: the maxima of one are then
// long known when they are needed. A block is whole batches.
inline constexpr std::int64_t kBatchGroups = 4;
static_assert(kBlockGroups % kBatchGroups == 0);

template <class Form, class Gradient>
void update_groups(const typename Form::Scalars& scalars_in_memory, const SplitArrays& arrays) {
  // A copy that no store of the loop can alias, so that it stays in registers.
  const typename Form::Scalars scalars = scalars_in_memory;
  const auto* gradient = static_cast<const typename Gradient::Element*>(arrays.gradient);
  auto flat_index = static_cast<std::uint64_t>(arrays.first_flat_index);
  const std::int64_t group_count = arrays.state.element_count / kGroupElements;
  Moments moments[kBatchGroups];
  Group next;
  for (std::int64_t first = 0; first < group_count; first += kBatchGroups) {
    if (first % kBlockGroups == 0) next = first_of_block(arrays.state, first);
    const std::int64_t count = std::min(kBatchGroups, group_count - first);
    Group group = next;
    for (std::int64_t g = 0; g < count; ++g) {
      update_moments<Form, Gradient>(scalars, next, gradient + g * kGroupElements, moments[g]);
      move_to_next<Form>(next);
    }
    for (std::int64_t g = 0; g < count; ++g) {
      const std::uint32_t hash_start =
          static_cast<std::uint32_t>(flat_index) * kHashStride + arrays.rounding.key_of(flat_index);
      update_weights_and_encode<Form, Gradient>(scalars, gradient, moments[g], hash_start, group);
      move_to_next<Form>(group);
      gradient += kGroupElements;
      flat_index += kGroupElements;
    }
  }
}

template <class Form>
bool update_if_stored_so(const typename Form::Scalars& scalars, const SplitArrays& arrays) {
  if (arrays.state.arrays != Form::kArrays) return false;
  // No step rounds to the nearest.
  if (!Form::kIsExact && !arrays.rounding.is_stochastic()) return false;
  switch (arrays.gradient_kind) {
    case GradientKind::fp32:
      update_groups<Form, Fp32Elements>(scalars, arrays);
      break;
    case GradientKind::bf16:
      update_groups<Form, Bf16Elements>(scalars, arrays);
      break;
    case GradientKind::fp16:
      update_groups<Form, Fp16Elements>(scalars, arrays);
      break;
  }
  return true;
}

template <class... Forms, class Scalars>
bool update_in_form(const Scalars& scalars, const SplitArrays& arrays) {
  return (update_if_stored_so<Forms>(scalars, arrays) || ...);
}

bool adamw_groups_for_target(const AdamWScalars& scalars, const SplitArrays& arrays) {
  using enum ArrayCode;
  return update_in_form<Form<AdamWRule, low16, fp32, fp32_with_ties>,
                        Form<AdamWRule, low16, mean8, square8>,
                        Form<AdamWRule, low8, mean8, square8>>(scalars, arrays);
}
bool sgd_groups_for_target(const SgdScalars& scalars, const SplitArrays& arrays) {
  using enum ArrayCode;
  return update_in_form<Form<SgdRule, low16_with_ties, fp32>, Form<SgdRule, low16, mean8>,
                        Form<SgdRule, low8, mean8>>(scalars, arrays);
}
bool adagrad_groups_for_target(const AdaGradScalars& scalars, const SplitArrays& arrays) {
  using enum ArrayCode;
  return update_in_form<Form<AdaGradRule, low16, fp32_with_ties>, Form<AdaGradRule, low16, bf16>,
                        Form<AdaGradRule, low8, bf16>>(scalars, arrays);
}

#else

bool adamw_groups_for_target(const AdamWScalars&, const SplitArrays&) { return false; }
bool sgd_groups_for_target(const SgdScalars&, const SplitArrays&) { return false; }
bool adagrad_groups_for_target(const AdaGradScalars&, const SplitArrays&) { return false; }

#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::optimizer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::optimizer {

HWY_EXPORT(adamw_groups_for_target);
HWY_EXPORT(sgd_groups_for_target);
HWY_EXPORT(adagrad_groups_for_target);

namespace {

// The group at the end that is not whole, in memory of its own and filled up with its last element:
// that changes no maximum and nothing of the others.
class LastGroup {
 public:
  explicit LastGroup(const SplitArrays& all)
      : all_(all),
        group_(all.state.element_count / kGroupElements),
        count_(all.state.element_count % kGroupElements),
        filled_(all) {
    const std::int64_t gradient_bytes = bytes_of(all.gradient_kind);
    const auto* gradients = static_cast<const std::byte*>(all.gradient);
    copy_elements(gradients + group_ * kGroupElements * gradient_bytes, gradient_bytes, gradient_);
    filled_.gradient = gradient_;
    filled_.first_flat_index += group_ * kGroupElements;
    filled_.state.element_count = kGroupElements;
    for (std::size_t a = 0; a < array_count(); ++a) {
      const ArrayWidth width = width_of(code(a));
      const GroupPlace from = place(a);
      copy_elements(all.state.data[a] + from.codes_bytes, width.element_bytes, state_[a]);
      std::memcpy(scale(a), all.state.data[a] + from.scale_bytes,
                  static_cast<std::size_t>(width.group_bytes));
      filled_.state.data[a] = state_[a];
    }
  }

  const SplitArrays& filled() const { return filled_; }

  // Codes that the group lacks are 0.
  void put_back() {
    for (std::size_t a = 0; a < array_count(); ++a) {
      const ArrayWidth width = width_of(code(a));
      const GroupPlace to = place(a);
      const auto used = static_cast<std::size_t>(count_ * width.element_bytes);
      std::byte* const codes = all_.state.data[a] + to.codes_bytes;
      std::memcpy(codes, state_[a], used);
      if (width.group_bytes > 0) std::memset(codes + used, 0, codes_bytes(width) - used);
      if (code(a) == ArrayCode::low16_with_ties) keep_ties(scale(a));
      std::memcpy(all_.state.data[a] + to.scale_bytes, scale(a),
                  static_cast<std::size_t>(width.group_bytes));
    }
  }

 private:
  std::size_t array_count() const { return static_cast<std::size_t>(all_.state.arrays.count); }
  ArrayCode code(std::size_t array) const { return all_.state.arrays.codes[array]; }
  GroupPlace place(std::size_t array) const {
    return place_of_group(code(array), group_, all_.state.element_count);
  }
  static std::size_t codes_bytes(const ArrayWidth& width) {
    return static_cast<std::size_t>(kGroupElements * width.element_bytes);
  }
  std::byte* scale(std::size_t array) { return state_[array] + codes_bytes(width_of(code(array))); }
  void copy_elements(const std::byte* from, std::int64_t element_bytes, std::byte* to) const {
    for (std::int64_t e = 0; e < kGroupElements; ++e) {
      std::memcpy(to + e * element_bytes, from + std::min(e, count_ - 1) * element_bytes,
                  static_cast<std::size_t>(element_bytes));
    }
  }
  void keep_ties(std::byte* scale) const {
    std::uint64_t ties;
    std::memcpy(&ties, scale, sizeof ties);
    ties &= (std::uint64_t{1} << count_) - 1;
    std::memcpy(scale, &ties, sizeof ties);
  }

  static constexpr std::int64_t kWidestElement = 4;
  static constexpr std::int64_t kWidestScale = 8;

  const SplitArrays& all_;
  std::int64_t group_;
  std::int64_t count_;
  SplitArrays filled_;
  alignas(64) std::byte gradient_[kGroupElements * kWidestElement];
  alignas(64) std::byte state_[kMaxStoredArrays][kGroupElements * kWidestElement + kWidestScale];
};

bool update_groups(const AdamWScalars& scalars, const SplitArrays& arrays) {
  return HWY_DYNAMIC_DISPATCH(adamw_groups_for_target)(scalars, arrays);
}
bool update_groups(const SgdScalars& scalars, const SplitArrays& arrays) {
  return HWY_DYNAMIC_DISPATCH(sgd_groups_for_target)(scalars, arrays);
}
bool update_groups(const AdaGradScalars& scalars, const SplitArrays& arrays) {
  return HWY_DYNAMIC_DISPATCH(adagrad_groups_for_target)(scalars, arrays);
}

// Whole groups; false, and nothing done, if there is no kernel for such arrays here.
bool update_whole_groups(const UpdateScalars& scalars, const SplitArrays& arrays) {
  return std::visit(
      [&arrays](const auto& rule_scalars) { return update_groups(rule_scalars, arrays); }, scalars);
}

}  // namespace

void update(const UpdateScalars& scalars, const SplitArrays& arrays) {
  if (!update_whole_groups(scalars, arrays)) return update_reference(scalars, arrays);
  if (arrays.state.element_count % kGroupElements == 0) return;
  LastGroup last(arrays);
  update_whole_groups(scalars, last.filled());
  last.put_back();
}

}  // namespace sluice::optimizer
#endif
