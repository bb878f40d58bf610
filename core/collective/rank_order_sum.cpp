#include "core/collective/rank_order_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/float16.h"

namespace sluice::collective {
namespace {

// Elements that are summed before the next: sums and one input of them stay in the first cache.
constexpr std::int64_t kBlockCount = 1024;

struct Bf16 {
  using Stored = std::uint16_t;
  using Sum = float;
  static Sum load(Stored bits) { return float_from_bf16(bits); }
  static Stored store(Sum value) { return bf16_from_float(value); }
};

struct Fp16 {
  using Stored = std::uint16_t;
  using Sum = float;
  // float_from_fp16() without branches, which the compiler makes vectors of: the product with 2^112
  // moves the exponent to its place and makes subnormals normal; exponent 31 is set to 255.
  static Sum load(Stored half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
    const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const std::uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
    return std::bit_cast<float>(sign | scaled | special);
  }
  static Stored store(Sum value) { return fp16_from_float(value); }
};

template <typename T>
struct Plain {
  using Stored = T;
  using Sum = T;
  static Sum load(Stored value) { return value; }
  static Stored store(Sum value) { return value; }
};

template <typename Format>
void sum_block(std::span<const std::byte* const> inputs, std::byte* out, std::int64_t first,
               std::int64_t count) {
  using Stored = typename Format::Stored;
  using Sum = typename Format::Sum;
  std::array<Stored, kBlockCount> given;
  std::array<Sum, kBlockCount> sums;
  const auto offset = static_cast<std::size_t>(first) * sizeof(Stored);
  const auto size = static_cast<std::size_t>(count) * sizeof(Stored);
  const auto n = static_cast<std::size_t>(count);
  std::memcpy(given.data(), inputs[0] + offset, size);
  for (std::size_t i = 0; i < n; ++i) sums[i] = Format::load(given[i]);
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    std::memcpy(given.data(), inputs[rank] + offset, size);
    for (std::size_t i = 0; i < n; ++i) sums[i] += Format::load(given[i]);
  }
  for (std::size_t i = 0; i < n; ++i) given[i] = Format::store(sums[i]);
  std::memcpy(out + offset, given.data(), size);
}

template <typename Format>
void sum(std::span<const std::byte* const> inputs, std::byte* out, std::int64_t count) {
  for (std::int64_t first = 0; first < count; first += kBlockCount) {
    sum_block<Format>(inputs, out, first, std::min(kBlockCount, count - first));
  }
}

}  // namespace

void sum_in_rank_order(ElementType type, std::span<const std::byte* const> inputs, std::byte* out,
                       std::int64_t count) {
  switch (type) {
    case ElementType::bf16:
      return sum<Bf16>(inputs, out, count);
    case ElementType::fp16:
      return sum<Fp16>(inputs, out, count);
    case ElementType::fp32:
      return sum<Plain<float>>(inputs, out, count);
    case ElementType::fp64:
      return sum<Plain<double>>(inputs, out, count);
    case ElementType::bytes:
      break;
  }
  CHECK(type != ElementType::bytes);
}

}  // namespace sluice::collective
