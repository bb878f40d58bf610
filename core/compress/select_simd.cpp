// Counting and compressing by magnitude, in vectors. Both are bound by memory when an element in a
// hundred is kept. Where the processor compresses a vector by itself, that pass stores a whole one
// each time and moves on by what it kept: no branch that depends on the data. Elsewhere Highway
// compresses through a table, which GCC 12 copies to the stack for each vector (with AVX2, 90 ms
// for a pass over 16 Mi elements that takes 6 ms by kept element).

#include <bit>
#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compress/select_simd.cpp"
#include "hwy/foreach_target.h"
// The order matters: what follows is compiled once for each target.
#include "base/check.h"
#include "core/compress/detail/select_kernels.h"
#include "core/optimizer/simd-inl.h"
#include "hwy/highway.h"

#ifndef SLUICE_COMPRESS_SELECT_PLAIN
#define SLUICE_COMPRESS_SELECT_PLAIN
namespace sluice::compress::detail {

// Plain code for what is left after the last whole vector, and for CPUs without vectors.
inline void count_one(float value, std::uint32_t prefix, const Level& level, std::size_t way,
                      Histogram& histogram) {
  const std::uint64_t magnitude = magnitude_of(value);
  if ((magnitude >> (level.shift + level.bits)) != prefix) return;
  const auto bin = (magnitude >> level.shift) & ((1u << level.bits) - 1);
  ++histogram.ways[bin][way];
}

inline void keep_one(const ElementRun& run, std::int64_t i, const KeptRoom& room,
                     std::int64_t& kept) {
  if (kept == room.capacity) return;
  room.indices[kept] =
      run.indices == nullptr ? run.first_index + static_cast<std::uint32_t>(i) : run.indices[i];
  room.values[kept] = run.values[i];
  ++kept;
}

}  // namespace sluice::compress::detail
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::compress::detail {
namespace HWY_NAMESPACE {

// Each of these goes as far as whole vectors reach, and says how far that is.
#if SLUICE_EXACT_SIMD
namespace hn = hwy::HWY_NAMESPACE;

using Bits = hn::ScalableTag<std::uint32_t>;

HWY_INLINE hn::Vec<Bits> magnitudes_at(const float* values) {
  const Bits d;
  const auto bits = hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(values));
  return hn::And(bits, hn::Set(d, 0x7fffffffu));
}

HWY_INLINE std::uint64_t bits_of(hn::Mask<Bits> mask) {
  alignas(8) std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(Bits(), mask, bytes);
  std::uint64_t bits = 0;
  for (std::size_t k = 0; k < 8; ++k) bits |= std::uint64_t{bytes[k]} << (8 * k);
  return bits;
}

std::int64_t count_top_for_target(const float* values, std::int64_t count, Histogram& histogram) {
  const Bits d;
  constexpr std::int64_t kVectors = 4;
  alignas(64) std::uint32_t bins[kVectors * hn::MaxLanes(d)];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + kVectors * lanes <= count; i += kVectors * lanes) {
    for (std::int64_t k = 0; k < kVectors; ++k)
      hn::Store(hn::ShiftRight<kLevels[0].shift>(magnitudes_at(values + i + k * lanes)), d,
                bins + k * lanes);
    for (std::int64_t k = 0; k < kVectors * lanes; k += kWays) {
      for (std::size_t way = 0; way < kWays; ++way) ++histogram.ways[bins[k + way]][way];
    }
  }
  return i;
}

std::int64_t count_within_for_target(const float* values, std::int64_t count, std::uint32_t prefix,
                                     const Level& level, Histogram& histogram) {
  const Bits d;
  alignas(64) std::uint32_t bins[hn::MaxLanes(d)];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const int above = level.shift + level.bits;
  const auto upper_bits = hn::Set(d, 0x7fffffffu >> above << above);
  const auto wanted = hn::Set(d, prefix << above);
  const auto level_bits = hn::Set(d, (1u << level.bits) - 1);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto magnitudes = magnitudes_at(values + i);
    const auto inside = hn::Eq(hn::And(magnitudes, upper_bits), wanted);
    if (hn::AllFalse(d, inside)) continue;
    hn::Store(hn::And(hn::ShiftRightSame(magnitudes, level.shift), level_bits), d, bins);
    if (hn::AllTrue(d, inside)) {  // a gradient of equal values, most often of zeros
      for (std::int64_t k = 0; k < lanes; k += kWays) {
        for (std::size_t way = 0; way < kWays; ++way) ++histogram.ways[bins[k + way]][way];
      }
      continue;
    }
    for (std::uint64_t bits = bits_of(inside); bits != 0; bits &= bits - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(bits));
      ++histogram.ways[bins[lane]][lane % kWays];
    }
  }
  return i;
}

constexpr bool kCompresses = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3;

// Takes its arguments by value: a vector store may alias whatever has an address.
template <bool kHasIndices>
std::int64_t keep(const ElementRun run, std::uint32_t floor, const KeptRoom room,
                  std::int64_t& kept_count) {
  const Bits d;
  const hn::ScalableTag<float> d_float;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // Magnitudes have 31 bits, so as signed numbers they compare the same; `floor` may be one more.
  const hn::RebindToSigned<Bits> d_signed;
  const auto below = hn::Set(d_signed, static_cast<std::int32_t>(floor - 1));
  const auto iota = hn::Iota(d, 0);
  std::int64_t kept = 0;
  std::int64_t i = 0;
  for (; i + lanes <= run.count && kept < room.capacity; i += lanes) {
    const auto magnitudes = hn::BitCast(d_signed, magnitudes_at(run.values + i));
    const auto mask = hn::RebindMask(d, hn::Gt(magnitudes, below));
    if (kCompresses && kept + lanes <= room.capacity) {
      hn::Vec<Bits> index;
      if constexpr (kHasIndices) {
        index = hn::LoadU(d, run.indices + i);
      } else {
        index = hn::Add(iota, hn::Set(d, run.first_index + static_cast<std::uint32_t>(i)));
      }
      const auto value = hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(run.values + i));
      hn::StoreU(hn::Compress(index, mask), d, room.indices + kept);
      hn::StoreU(hn::BitCast(d_float, hn::Compress(value, mask)), d_float, room.values + kept);
      kept += static_cast<std::int64_t>(hn::CountTrue(d, mask));
    } else {
      for (std::uint64_t bits = bits_of(mask); bits != 0; bits &= bits - 1)
        keep_one(run, i + std::countr_zero(bits), room, kept);
    }
  }
  kept_count = kept;
  return i;
}

std::int64_t keep_for_target(const ElementRun& run, std::uint32_t floor, const KeptRoom& room,
                             std::int64_t& kept) {
  return run.indices == nullptr ? keep<false>(run, floor, room, kept)
                                : keep<true>(run, floor, room, kept);
}

// Stops before the vector in which the last wanted one may lie.
std::int64_t pass_equal_for_target(const float* values, std::int64_t count, std::uint32_t magnitude,
                                   std::int64_t& wanted) {
  const Bits d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto same = hn::Set(d, magnitude);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto equal = hn::CountTrue(d, hn::Eq(magnitudes_at(values + i), same));
    if (static_cast<std::int64_t>(equal) >= wanted) return i;
    wanted -= static_cast<std::int64_t>(equal);
  }
  return i;
}

#else

std::int64_t count_top_for_target(const float*, std::int64_t, Histogram&) { return 0; }
std::int64_t count_within_for_target(const float*, std::int64_t, std::uint32_t, const Level&,
                                     Histogram&) {
  return 0;
}
std::int64_t keep_for_target(const ElementRun&, std::uint32_t, const KeptRoom&, std::int64_t&) {
  return 0;
}
std::int64_t pass_equal_for_target(const float*, std::int64_t, std::uint32_t, std::int64_t&) {
  return 0;
}

#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::compress::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::compress::detail {

HWY_EXPORT(count_top_for_target);
HWY_EXPORT(count_within_for_target);
HWY_EXPORT(keep_for_target);
HWY_EXPORT(pass_equal_for_target);

void Histogram::add_ways() {
  for (std::size_t bin = 0; bin < kBins; ++bin)
    bins[bin] = ways[bin][0] + ways[bin][1] + ways[bin][2] + ways[bin][3];
}

void count_top(const float* values, std::int64_t count, Histogram& histogram) {
  std::int64_t i = HWY_DYNAMIC_DISPATCH(count_top_for_target)(values, count, histogram);
  for (; i < count; ++i) count_one(values[i], 0, kLevels[0], 0, histogram);
}

void count_within(const float* values, std::int64_t count, std::uint32_t prefix, const Level& level,
                  Histogram& histogram) {
  std::int64_t i =
      HWY_DYNAMIC_DISPATCH(count_within_for_target)(values, count, prefix, level, histogram);
  for (; i < count; ++i) count_one(values[i], prefix, level, 0, histogram);
}

std::int64_t keep_from(const ElementRun& run, std::uint32_t floor, const KeptRoom& room) {
  std::int64_t kept = 0;
  std::int64_t i = HWY_DYNAMIC_DISPATCH(keep_for_target)(run, floor, room, kept);
  for (; i < run.count && kept < room.capacity; ++i) {
    if (magnitude_of(run.values[i]) >= floor) keep_one(run, i, room, kept);
  }
  return kept;
}

std::int64_t position_after_equal(const float* values, std::int64_t count, std::uint32_t magnitude,
                                  std::int64_t wanted) {
  std::int64_t i = HWY_DYNAMIC_DISPATCH(pass_equal_for_target)(values, count, magnitude, wanted);
  for (; i < count && wanted > 0; ++i) wanted -= magnitude_of(values[i]) == magnitude;
  CHECK_EQ(wanted, 0);
  return i;
}

Boundary find_boundary(const std::array<std::uint64_t, kBins>& bins, std::int64_t wanted) {
  std::int64_t above = 0;
  std::uint32_t bin = kBins - 1;
  while (above + static_cast<std::int64_t>(bins[bin]) < wanted) {
    above += static_cast<std::int64_t>(bins[bin]);
    CHECK_GT(bin, 0u);
    --bin;
  }
  return {.bin = bin, .above = above};
}

}  // namespace sluice::compress::detail
#endif
