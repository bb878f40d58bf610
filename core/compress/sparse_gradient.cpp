// Opening: every rule of docs/sparse_gradient_format.md, before anything is used.

#include "core/compress/sparse_gradient.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/float16.h"

namespace sluice::compress {
namespace {

template <typename... Args>
Error damaged(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::corrupt, format, std::forward<Args>(args)...)
      .with_context("sparse gradient");
}

Status check_sizes(const SparseHeader& header, std::span<const std::byte> bytes,
                   std::int64_t expected_element_count) {
  if (header.element_count != static_cast<std::uint64_t>(expected_element_count)) {
    return damaged("{} elements (offset 16), expected {}: it belongs to another subgroup",
                   header.element_count, expected_element_count);
  }
  if (header.kept_count > header.element_count) {
    return damaged("{} elements kept (offset 24) of {} (offset 16)", header.kept_count,
                   header.element_count);
  }
  const SparseLayout layout =
      sparse_layout(expected_element_count, static_cast<std::int64_t>(header.kept_count),
                    static_cast<optimizer::GradientKind>(header.value_kind));
  if (header.tile_count != static_cast<std::uint64_t>(layout.tile_count)) {
    return damaged("{} tiles (offset 32), but {} elements have {}", header.tile_count,
                   expected_element_count, layout.tile_count);
  }
  if (static_cast<std::int64_t>(bytes.size()) < layout.size_bytes) {
    return damaged("ends at offset {}, but its header announces {} bytes: the rest is missing",
                   bytes.size(), layout.size_bytes);
  }
  return ok_status();
}

Status check_header(const SparseHeader& header) {
  if (header.magic != kSparseMagic)
    return damaged("the 8 bytes at offset 0 are not SLCSPARS: something else lies here");
  if (header.version != kSparseVersion) {
    return make_error(
        ErrorCode::unsupported,
        "sparse gradient: format version {} at offset 8, this program reads version {}",
        header.version, kSparseVersion);
  }
  if (header.value_kind > static_cast<std::uint32_t>(optimizer::GradientKind::fp16))
    return damaged("value kind {} at offset 12 is not 0, 1 or 2", header.value_kind);
  if (header.tile_elements != kTileElements) {
    return damaged("tiles of {} elements (offset 36), this program reads {}", header.tile_elements,
                   kTileElements);
  }
  const auto nonzero = std::find_if(header.reserved.begin(), header.reserved.end(),
                                    [](std::uint8_t byte) { return byte != 0; });
  if (nonzero != header.reserved.end()) {
    return damaged("reserved byte at offset {} is {}, not 0",
                   offsetof(SparseHeader, reserved) + (nonzero - header.reserved.begin()),
                   *nonzero);
  }
  return ok_status();
}

Status check_padding(std::span<const std::byte> bytes, std::int64_t from, std::int64_t to) {
  for (std::int64_t offset = from; offset < to; ++offset) {
    const std::byte byte = bytes[static_cast<std::size_t>(offset)];
    if (byte != std::byte{0}) {
      return damaged("padding at offset {} is {}, not 0", offset, std::to_integer<int>(byte));
    }
  }
  return ok_status();
}

Status check_counts(const SparseGradientView& view, const SparseLayout& layout) {
  std::int64_t sum = 0;
  for (std::int64_t tile = 0; tile < view.tile_count(); ++tile) {
    const std::uint32_t count = view.tile_counts[static_cast<std::size_t>(tile)];
    if (count > view.elements_in(tile)) {
      return damaged("tile {} has {} elements and keeps {} (offset {})", tile,
                     view.elements_in(tile), count, layout.counts_offset + 4 * tile);
    }
    sum += count;
  }
  if (sum != view.kept_count()) {
    return damaged(
        "the counts of its {} tiles (offset {}) sum to {}, but {} elements are kept "
        "(offset 24)",
        view.tile_count(), layout.counts_offset, sum, view.kept_count());
  }
  return ok_status();
}

// Without branches, so that the compiler makes vectors of it.
bool is_ascending(std::span<const std::uint16_t> indices) {
  int wrong = 0;
  for (std::size_t i = 1; i < indices.size(); ++i) wrong |= indices[i] <= indices[i - 1];
  return wrong == 0;
}

Status not_ascending(std::span<const std::uint16_t> indices, std::int64_t tile,
                     std::int64_t offset) {
  std::size_t i = 1;
  while (indices[i] > indices[i - 1]) ++i;
  return damaged("index {} in tile {} (offset {}) follows {}: indices must ascend", indices[i],
                 tile, offset + 2 * static_cast<std::int64_t>(i), indices[i - 1]);
}

Status check_indices(const SparseGradientView& view, const SparseLayout& layout) {
  if (view.tile_count() == 0) return ok_status();
  for (SparseTile tile = view.tile_at(0);; tile = view.next(tile)) {
    const auto indices = view.indices.subspan(static_cast<std::size_t>(tile.first_kept),
                                              static_cast<std::size_t>(tile.kept_count));
    const std::int64_t offset = layout.indices_offset + 2 * tile.first_kept;
    if (!is_ascending(indices)) return not_ascending(indices, tile.tile, offset);
    // They ascend, so the last is the largest.
    if (!indices.empty() && indices.back() >= view.elements_in(tile.tile)) {
      return damaged("index {} in tile {} (offset {}), which has {} elements", indices.back(),
                     tile.tile, offset + 2 * (tile.kept_count - 1), view.elements_in(tile.tile));
    }
    if (tile.tile + 1 == view.tile_count()) return ok_status();
  }
}

template <class Element, class Widen>
void scatter(const SparseGradientView& view, const SparseTile& tile, const Widen& widen,
             float* out) {
  const std::uint16_t* indices = view.indices.data() + tile.first_kept;
  const auto* values = static_cast<const Element*>(view.values) + tile.first_kept;
  for (std::int64_t i = 0; i < tile.kept_count; ++i) out[indices[i]] = widen(values[i]);
}

}  // namespace

SparseTile SparseGradientView::tile_at(std::int64_t tile) const {
  CHECK_GE(tile, 0);
  CHECK_LT(tile, tile_count());
  const auto end = tile_counts.begin() + tile;
  return {.tile = tile,
          .first_kept = std::accumulate(tile_counts.begin(), end, std::int64_t{0}),
          .kept_count = *end};
}

SparseTile SparseGradientView::next(const SparseTile& tile) const {
  CHECK_LT(tile.tile + 1, tile_count());
  return {.tile = tile.tile + 1,
          .first_kept = tile.first_kept + tile.kept_count,
          .kept_count = tile_counts[static_cast<std::size_t>(tile.tile + 1)]};
}

std::int64_t SparseGradientView::elements_in(std::int64_t tile) const {
  return std::min(kTileElements, element_count - tile * kTileElements);
}

Result<SparseGradientView> open_sparse_gradient(std::span<const std::byte> bytes,
                                                std::int64_t expected_element_count) {
  CHECK_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0u);
  CHECK_GE(expected_element_count, 0);
  CHECK_LE(expected_element_count, kMaxElements);
  SparseHeader header;
  if (bytes.size() < sizeof(header))
    return damaged("ends at offset {}, inside its header of {} bytes", bytes.size(),
                   sizeof(header));
  std::memcpy(&header, bytes.data(), sizeof(header));
  RETURN_IF_ERROR(check_header(header));
  RETURN_IF_ERROR(check_sizes(header, bytes, expected_element_count));

  const auto kind = static_cast<optimizer::GradientKind>(header.value_kind);
  const auto kept_count = static_cast<std::int64_t>(header.kept_count);
  const SparseLayout layout = sparse_layout(expected_element_count, kept_count, kind);
  const auto* counts = reinterpret_cast<const std::uint32_t*>(bytes.data() + layout.counts_offset);
  const auto* indices =
      reinterpret_cast<const std::uint16_t*>(bytes.data() + layout.indices_offset);
  const SparseGradientView view{
      .value_kind = kind,
      .element_count = expected_element_count,
      .tile_counts = {counts, static_cast<std::size_t>(layout.tile_count)},
      .indices = {indices, static_cast<std::size_t>(kept_count)},
      .values = bytes.data() + layout.values_offset};
  RETURN_IF_ERROR(
      check_padding(bytes, layout.counts_offset + 4 * layout.tile_count, layout.indices_offset));
  RETURN_IF_ERROR(
      check_padding(bytes, layout.indices_offset + 2 * kept_count, layout.values_offset));
  RETURN_IF_ERROR(check_padding(
      bytes, layout.values_offset + optimizer::bytes_of(kind) * kept_count, layout.size_bytes));
  RETURN_IF_ERROR(check_counts(view, layout));
  RETURN_IF_ERROR(check_indices(view, layout));
  return view;
}

void scatter_tile(const SparseGradientView& view, std::int64_t tile, float* out) {
  std::memset(out, 0, static_cast<std::size_t>(view.elements_in(tile)) * sizeof(float));
  scatter_onto_zeros(view, view.tile_at(tile), out);
}

void scatter_onto_zeros(const SparseGradientView& view, const SparseTile& tile, float* out) {
  switch (view.value_kind) {
    case optimizer::GradientKind::fp32:
      return scatter<float>(view, tile, [](float value) { return value; }, out);
    case optimizer::GradientKind::bf16:
      return scatter<std::uint16_t>(view, tile, float_from_bf16, out);
    case optimizer::GradientKind::fp16:
      return scatter<std::uint16_t>(view, tile, float_from_fp16, out);
  }
}

void clear_scattered(const SparseGradientView& view, const SparseTile& tile, float* out) {
  const std::uint16_t* indices = view.indices.data() + tile.first_kept;
  for (std::int64_t i = 0; i < tile.kept_count; ++i) out[indices[i]] = 0;
}

}  // namespace sluice::compress
