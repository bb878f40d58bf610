#pragma once
// The passes that selecting elements is made of. Each is one Highway kernel, chosen at run time for
// this CPU; where there are no vectors for it, plain code gives the same result.
//
// Magnitudes (core/compress/selection.h) have 31 bits. They are counted 11 bits at a time from the
// top, then 10 and 10.
//
// Thread contract: free functions, safe on disjoint outputs.

#include <array>
#include <cstdint>

#include "core/compress/selection.h"

namespace sluice::compress::detail {

// One step of narrowing a magnitude down: its bits [shift, shift + bits).
struct Level {
  int shift;
  int bits;
};
inline constexpr std::array<Level, 3> kLevels = {{{20, 11}, {10, 10}, {0, 10}}};

inline constexpr std::size_t kBins = 2048;
// Neighbours count in different ways, so that equal ones do not wait for one another's store. The
// ways of a bin lie side by side: tables a multiple of 4 KiB apart would look like one address to
// the processor's check of loads against earlier stores.
inline constexpr std::size_t kWays = 4;

struct Histogram {
  alignas(64) std::array<std::array<std::uint32_t, kWays>, kBins> ways{};
  std::array<std::uint32_t, kBins> bins{};

  void clear() { ways.fill({}); }
  void add_ways();  // into the bins
};

// Counts the top level of every magnitude.
void count_top(const float* values, std::int64_t count, Histogram& histogram);

// Counts `level` of those magnitudes whose bits above it are `prefix`.
void count_within(const float* values, std::int64_t count, std::uint32_t prefix, const Level& level,
                  Histogram& histogram);

// A run of elements: consecutive ones from `first_index` on, or, with `indices`, chosen ones.
struct ElementRun {
  const float* values = nullptr;
  const std::uint32_t* indices = nullptr;
  std::uint32_t first_index = 0;
  std::int64_t count = 0;

  ElementRun part(std::int64_t first, std::int64_t part_count) const {
    return {.values = values + first,
            .indices = indices == nullptr ? nullptr : indices + first,
            .first_index = first_index + static_cast<std::uint32_t>(first),
            .count = part_count};
  }
};

// Writes the elements with a magnitude of at least `floor`, in order, until the room is full, and
// says how many. Nothing is written behind the room.
std::int64_t keep_from(const ElementRun& run, std::uint32_t floor, const KeptRoom& room);

// How far into `values` the first `wanted` elements of exactly that magnitude reach: the position
// after the last of them. There are that many.
std::int64_t position_after_equal(const float* values, std::int64_t count, std::uint32_t magnitude,
                                  std::int64_t wanted);

// In which bin, counted from the highest, the `wanted`-th element lies, and how many lie above it.
struct Boundary {
  std::uint32_t bin;
  std::int64_t above;
};
Boundary find_boundary(const std::array<std::uint64_t, kBins>& bins, std::int64_t wanted);

}  // namespace sluice::compress::detail
