#pragma once
// The sparse gradient of one subgroup as it goes to a device. The bytes are on the page
// docs/sparse_gradient_format.md: header, a count for every tile of kTileElements elements, the
// kept elements' indices inside their tiles, their values. A device reads it front to back and
// needs memory for one tile.
//
// Thread contract: free functions and plain data; a view may be used by any number of threads while
// its bytes live.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/units.h"
#include "core/compress/selection.h"
#include "core/optimizer/update_rule.h"

namespace sluice::compress {

// As many elements as the update handles at once (core/csd/update_kernel.cpp): an index in a tile
// takes 16 bits, and a tile of fp32 is 64 KiB.
inline constexpr std::int64_t kTileElements = 16 * 1024;

inline constexpr std::array<char, 8> kSparseMagic = {'S', 'L', 'C', 'S', 'P', 'A', 'R', 'S'};
inline constexpr std::uint32_t kSparseVersion = 1;

// The first 64 bytes, as they lie: little-endian, no padding.
struct SparseHeader {
  std::array<char, 8> magic = kSparseMagic;
  std::uint32_t version = kSparseVersion;
  std::uint32_t value_kind = 0;  // optimizer::GradientKind
  std::uint64_t element_count = 0;
  std::uint64_t kept_count = 0;
  std::uint32_t tile_count = 0;
  std::uint32_t tile_elements = kTileElements;
  std::array<std::uint8_t, 24> reserved{};
};
static_assert(sizeof(SparseHeader) == 64);

// Where the sections of a sparse gradient begin, and where it ends. Each begins at a multiple of 64
// bytes, and the whole is one.
struct SparseLayout {
  std::int64_t tile_count;
  std::int64_t counts_offset;
  std::int64_t indices_offset;
  std::int64_t values_offset;
  std::int64_t size_bytes;
};
constexpr SparseLayout sparse_layout(std::int64_t element_count, std::int64_t kept_count,
                                     optimizer::GradientKind value_kind) {
  constexpr std::int64_t kLine = 64;
  const std::int64_t tile_count = divide_up(element_count, kTileElements);
  const std::int64_t counts = sizeof(SparseHeader);
  const std::int64_t indices = counts + round_up(4 * tile_count, kLine);
  const std::int64_t values = indices + round_up(2 * kept_count, kLine);
  const std::int64_t end = values + round_up(optimizer::bytes_of(value_kind) * kept_count, kLine);
  return {.tile_count = tile_count,
          .counts_offset = counts,
          .indices_offset = indices,
          .values_offset = values,
          .size_bytes = end};
}
constexpr std::int64_t sparse_gradient_bytes(std::int64_t element_count, std::int64_t kept_count,
                                             optimizer::GradientKind value_kind) {
  return sparse_layout(element_count, kept_count, value_kind).size_bytes;
}

// Writes what was kept of `element_count` elements, and says how many bytes that is. The indices
// ascend strictly and lie below element_count; `bytes` is aligned to 64 and has room for
// sparse_gradient_bytes(). 16-bit values are rounded to nearest even.
std::int64_t encode_sparse_gradient(const KeptElements& kept, std::int64_t element_count,
                                    optimizer::GradientKind value_kind, std::span<std::byte> bytes);

// The kept elements of one tile.
struct SparseTile {
  std::int64_t tile = 0;
  std::int64_t first_kept = 0;
  std::int64_t kept_count = 0;
};

// A sparse gradient that has been looked through and found whole. It refers to its bytes.
struct SparseGradientView {
  optimizer::GradientKind value_kind = optimizer::GradientKind::fp32;
  std::int64_t element_count = 0;
  std::span<const std::uint32_t> tile_counts;
  std::span<const std::uint16_t> indices;
  const void* values = nullptr;  // as many as indices, of value_kind

  std::int64_t tile_count() const { return static_cast<std::int64_t>(tile_counts.size()); }
  std::int64_t kept_count() const { return static_cast<std::int64_t>(indices.size()); }

  // A tile by its number adds up the counts before it; the next one costs nothing.
  SparseTile tile_at(std::int64_t tile) const;
  SparseTile next(const SparseTile& tile) const;
  std::int64_t elements_in(std::int64_t tile) const;  // kTileElements, or fewer in the last
};

// Looks through all of it before anything is used. Refused as ErrorCode::corrupt (a foreign version
// as unsupported), with what and at which offset: a foreign magic, version, kind or tile size;
// another element count than expected; fewer bytes than the header announces; counts that do not
// sum to the kept count; indices outside their tile or the subgroup, or not strictly ascending in
// their tile; anything but zero in bytes that must be zero. What follows size_bytes is ignored:
// transfers are whole pages. `bytes` is aligned to 64.
Result<SparseGradientView> open_sparse_gradient(std::span<const std::byte> bytes,
                                                std::int64_t expected_element_count);

// Writes the tile's elements_in() elements: the kept ones as fp32, all others 0.
void scatter_tile(const SparseGradientView& view, std::int64_t tile, float* out);

// The same for memory that is all 0 already: only the kept ones are written. And back to all 0.
void scatter_onto_zeros(const SparseGradientView& view, const SparseTile& tile, float* out);
void clear_scattered(const SparseGradientView& view, const SparseTile& tile, float* out);

}  // namespace sluice::compress
