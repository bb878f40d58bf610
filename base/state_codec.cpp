#include "base/state_codec.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/float16.h"

namespace sluice {
namespace {

using Bits = std::uint32_t;

constexpr Bits kSign = 0x80000000u;
constexpr Bits kMagnitude = 0x7fffffffu;
constexpr int kCodeShift = 19;  // 16 steps a binade: 4 bits of the mantissa

Bits bits_of(float value) { return std::bit_cast<Bits>(value); }
float value_of(Bits bits) { return std::bit_cast<float>(bits); }
// Every NaN is the one that state has (optimizer::stored_float).
Bits stored_bits(float value) { return value == value ? bits_of(value) : 0x7fc00000u; }

Bits extended16(std::uint16_t low) { return static_cast<Bits>(static_cast<std::int16_t>(low)); }
Bits extended8(std::uint8_t low) { return static_cast<Bits>(static_cast<std::int8_t>(low)); }

template <typename T>
T load(const std::byte* data, std::int64_t offset_bytes) {
  T value;
  std::memcpy(&value, data + offset_bytes, sizeof value);
  return value;
}
template <typename T>
void store(std::byte* data, std::int64_t offset_bytes, T value) {
  std::memcpy(data + offset_bytes, &value, sizeof value);
}

// 2^(E-7), from which on a mean's codes are logarithmic.
Bits mean_bias(Bits exponent) {
  return std::max<std::int32_t>(static_cast<std::int32_t>(exponent) - 7, 1) * (Bits{1} << 23);
}

// The values of random bits that round to the nearest.
struct RandomBits {
  Bits low8;
  Bits mean;
  Bits square;
  Bits bf16;
};
RandomBits random_bits(const CodeRounding& rounding, std::int64_t flat_index) {
  if (!rounding.is_stochastic()) return {0x80u, 0x40000u, 0x40000u, 0x8000u};
  const Bits h = rounding.bits(flat_index);
  return {(h >> 8) & 0xffu, h >> 13, h & 0x7ffffu, h & 0xffffu};
}

Bits decoded_mean(std::uint8_t code, std::uint8_t exponent) {
  const Bits bias = mean_bias(exponent);
  const float magnitude = value_of(bias + (Bits{code & 127u} << kCodeShift)) - value_of(bias);
  return bits_of(magnitude) | static_cast<Bits>(code >> 7) << 31;
}
std::uint8_t mean_code(Bits bits, Bits exponent, Bits random) {
  const Bits bias = mean_bias(exponent);
  const float biased = value_of(bits & kMagnitude) + value_of(bias);
  const Bits steps = (bits_of(biased) - bias + random) >> kCodeShift;
  return static_cast<std::uint8_t>(std::min<Bits>(steps, 127u) | bits >> 31 << 7);
}

Bits decoded_square(std::uint8_t code, Bits largest) {
  if (code == 0) return 0;
  const auto bits = static_cast<std::int32_t>(largest - ((255u - Bits{code}) << kCodeShift));
  return static_cast<Bits>(std::max(bits, 0));
}
std::uint8_t square_code(Bits bits, Bits largest, Bits random) {
  if (bits == 0) return 0;
  const auto steps = static_cast<std::int32_t>((largest - bits + random) >> kCodeShift);
  return static_cast<std::uint8_t>(std::max(255 - steps, 1));
}

// One group of a stored span.
class Group {
 public:
  Group(const StoredSpan& stored, std::int64_t group)
      : stored_(stored),
        first_(group * kGroupElements),
        group_(group),
        count_(std::min(kGroupElements, stored.element_count - first_)) {}

  std::int64_t count() const { return count_; }
  // Bits of an element of a decoded array.
  Bits decoded(std::int32_t variable, std::int64_t element) const;
  void encode(std::span<const std::span<const float>> values, const CodeRounding& rounding,
              std::int64_t first_flat_index) const;

 private:
  ArrayCode code(std::int32_t array) const {
    return stored_.arrays.codes[static_cast<std::size_t>(array)];
  }
  std::byte* data(std::int32_t array) const {
    return stored_.data[static_cast<std::size_t>(array)];
  }
  GroupPlace place(std::int32_t array) const {
    return place_of_group(code(array), group_, stored_.element_count);
  }
  std::int64_t at(std::int32_t array, std::int64_t element) const {
    return place(array).codes_bytes + element * width_of(code(array)).element_bytes;
  }
  Bits raw(std::int32_t array, std::int64_t element) const;
  bool is_tie(std::int64_t element) const;
  Bits master_weight(std::int64_t element) const;
  bool has_ties() const;
  void encode_master_weights(std::span<const float> values, const CodeRounding& rounding,
                             std::int64_t first_flat_index) const;
  Bits mean_exponent(std::span<const float> values, Bits largest,
                     const CodeRounding& rounding) const;
  void encode_array(std::int32_t array, std::span<const float> values, Bits scale,
                    const CodeRounding& rounding, std::int64_t first_flat_index) const;

  const StoredSpan& stored_;
  std::int64_t first_;
  std::int64_t group_;
  std::int64_t count_;
};

bool Group::has_ties() const {
  for (std::int32_t a = 0; a < stored_.arrays.count; ++a) {
    if (code(a) == ArrayCode::fp32_with_ties || code(a) == ArrayCode::low16_with_ties) return true;
  }
  return false;
}

bool Group::is_tie(std::int64_t element) const {
  for (std::int32_t a = 0; a < stored_.arrays.count; ++a) {
    if (code(a) == ArrayCode::fp32_with_ties) {
      return (load<Bits>(data(a), at(a, element)) & kSign) != 0;
    }
    if (code(a) == ArrayCode::low16_with_ties) {
      return (load<std::uint64_t>(data(a), place(a).scale_bytes) >> element & 1u) != 0;
    }
  }
  return false;
}

Bits Group::master_weight(std::int64_t element) const {
  const Bits high = Bits{load<std::uint16_t>(data(0), at(0, element))} << 16;
  if (code(1) == ArrayCode::low8) {
    return high + (extended8(load<std::uint8_t>(data(1), at(1, element))) << 8);
  }
  const Bits low = extended16(load<std::uint16_t>(data(1), at(1, element)));
  return high + low + (is_tie(element) ? 0x10000u : 0u);
}

// Bits of an array that is no part of the master weights.
Bits Group::raw(std::int32_t array, std::int64_t element) const {
  switch (code(array)) {
    case ArrayCode::fp32_with_ties:
      return load<Bits>(data(array), at(array, element)) & kMagnitude;
    case ArrayCode::mean8:
      return decoded_mean(load<std::uint8_t>(data(array), at(array, element)),
                          load<std::uint8_t>(data(array), place(array).scale_bytes));
    case ArrayCode::square8:
      return decoded_square(load<std::uint8_t>(data(array), at(array, element)),
                            load<Bits>(data(array), place(array).scale_bytes));
    case ArrayCode::bf16:
      return Bits{load<std::uint16_t>(data(array), at(array, element))} << 16;
    default:
      return load<Bits>(data(array), at(array, element));
  }
}

Bits Group::decoded(std::int32_t variable, std::int64_t element) const {
  if (!stored_.arrays.is_split()) return raw(variable, element);
  return variable == 0 ? master_weight(element) : raw(variable + 1, element);
}

void Group::encode_master_weights(std::span<const float> values, const CodeRounding& rounding,
                                  std::int64_t first_flat_index) const {
  const bool rounds_to_even = has_ties();
  std::uint64_t ties = 0;
  for (std::int64_t e = 0; e < count_; ++e) {
    Bits bits = stored_bits(values[static_cast<std::size_t>(first_ + e)]);
    if (code(1) == ArrayCode::low8) {
      bits = (bits + random_bits(rounding, first_flat_index + first_ + e).low8) & ~0xffu;
    }
    const Bits high = rounds_to_even ? bf16_from_float(value_of(bits)) : (bits + 0x8000u) >> 16;
    store(data(0), at(0, e), static_cast<std::uint16_t>(high));
    if (code(1) == ArrayCode::low8) {
      store(data(1), at(1, e), static_cast<std::uint8_t>(bits >> 8));
    } else {
      store(data(1), at(1, e), static_cast<std::uint16_t>(bits));
    }
    if (rounds_to_even && bits - (high << 16) == 0x8000u) ties |= std::uint64_t{1} << e;
  }
  if (code(1) == ArrayCode::low16_with_ties) {
    // Elements that the last group lacks.
    for (std::int64_t e = count_; e < kGroupElements; ++e)
      store(data(1), at(1, e), std::uint16_t{0});
    store(data(1), place(1).scale_bytes, ties);
  }
  for (std::int32_t a = 2; a < stored_.arrays.count; ++a) {
    if (code(a) != ArrayCode::fp32_with_ties) continue;
    for (std::int64_t e = 0; e < count_; ++e) {
      const Bits bits = load<Bits>(data(a), at(a, e)) & kMagnitude;
      store(data(a), at(a, e), bits | static_cast<Bits>(ties >> e & 1u) << 31);
    }
  }
}

// Values that were decoded are encoded without loss by the exponent that they had: that of the
// largest, or, where its code lies at the begin of a binade, the next one.
Bits Group::mean_exponent(std::span<const float> values, Bits largest,
                          const CodeRounding& rounding) const {
  const Bits exponent = largest >> 23;
  if (rounding.is_stochastic() || exponent == 255) return exponent;
  const Bits nearest = random_bits(rounding, 0).mean;
  for (const Bits candidate : {exponent, exponent + 1}) {
    bool are_codes = true;
    for (std::int64_t e = 0; e < count_ && are_codes; ++e) {
      const Bits bits = stored_bits(values[static_cast<std::size_t>(first_ + e)]);
      const std::uint8_t found = mean_code(bits, candidate, nearest);
      are_codes = decoded_mean(found, static_cast<std::uint8_t>(candidate)) == bits;
    }
    if (are_codes) return candidate;
  }
  return exponent;
}

// `scale`: what the group has beside its codes, where they have something.
void Group::encode_array(std::int32_t array, std::span<const float> values, Bits scale,
                         const CodeRounding& rounding, std::int64_t first_flat_index) const {
  for (std::int64_t e = 0; e < count_; ++e) {
    const Bits bits = stored_bits(values[static_cast<std::size_t>(first_ + e)]);
    const RandomBits random = random_bits(rounding, first_flat_index + first_ + e);
    switch (code(array)) {
      case ArrayCode::mean8:
        store(data(array), at(array, e), mean_code(bits, scale, random.mean));
        break;
      case ArrayCode::square8:
        store(data(array), at(array, e), square_code(bits, scale, random.square));
        break;
      case ArrayCode::bf16:
        store(data(array), at(array, e), static_cast<std::uint16_t>((bits + random.bf16) >> 16));
        break;
      default:
        store(data(array), at(array, e), bits);
    }
  }
  if (code(array) == ArrayCode::mean8) {
    store(data(array), place(array).scale_bytes, static_cast<std::uint8_t>(scale));
  }
  if (code(array) == ArrayCode::square8) store(data(array), place(array).scale_bytes, scale);
  // Elements that the last group lacks.
  for (std::int64_t e = count_; e < kGroupElements && width_of(code(array)).group_bytes > 0; ++e) {
    store(data(array), at(array, e), std::uint8_t{0});
  }
}

void Group::encode(std::span<const std::span<const float>> values, const CodeRounding& rounding,
                   std::int64_t first_flat_index) const {
  const std::int32_t split = stored_.arrays.is_split() ? 1 : 0;
  for (std::int32_t a = 2 * split; a < stored_.arrays.count; ++a) {
    const std::span<const float> array = values[static_cast<std::size_t>(a - split)];
    Bits largest = 0;
    for (const float value :
         array.subspan(static_cast<std::size_t>(first_), static_cast<std::size_t>(count_))) {
      largest = std::max(largest, stored_bits(value) & kMagnitude);
    }
    const Bits scale =
        code(a) == ArrayCode::mean8 ? mean_exponent(array, largest, rounding) : largest;
    encode_array(a, array, scale, rounding, first_flat_index);
  }
  if (split == 1) encode_master_weights(values[0], rounding, first_flat_index);
}

}  // namespace

GroupPlace place_of_group(ArrayCode code, std::int64_t group, std::int64_t element_count) {
  const ArrayWidth width = width_of(code);
  if (width.group_bytes == 0) return {group * kGroupElements * width.element_bytes, 0};
  const std::int64_t groups = (element_count + kGroupElements - 1) / kGroupElements;
  const std::int64_t block_first = group / kBlockGroups * kBlockGroups;
  const std::int64_t in_block = std::min(kBlockGroups, groups - block_first);
  const std::int64_t group_bytes = kGroupElements * width.element_bytes;
  const std::int64_t begin = block_first * (group_bytes + width.group_bytes);
  return {begin + (group - block_first) * group_bytes,
          begin + in_block * group_bytes + (group - block_first) * width.group_bytes};
}

void decode(const StoredSpan& stored, std::int32_t variable, std::int64_t first,
            std::span<float> out) {
  CHECK_EQ(first % kGroupElements, 0);
  CHECK_LE(first + std::ssize(out), stored.element_count);
  std::int64_t done = 0;
  for (std::int64_t group = first / kGroupElements; done < std::ssize(out); ++group) {
    const Group of(stored, group);
    const std::int64_t count = std::min(of.count(), std::ssize(out) - done);
    for (std::int64_t e = 0; e < count; ++e) {
      out[static_cast<std::size_t>(done + e)] = value_of(of.decoded(variable, e));
    }
    done += count;
  }
}

void encode(std::span<const std::span<const float>> values, const CodeRounding& rounding,
            std::int64_t first_flat_index, const StoredSpan& stored) {
  CHECK_EQ(std::ssize(values), stored.arrays.decoded_count());
  for (std::int64_t group = 0; group * kGroupElements < stored.element_count; ++group) {
    Group(stored, group).encode(values, rounding, first_flat_index);
  }
}

}  // namespace sluice
