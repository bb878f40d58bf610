#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "core/compress/sparse_gradient.h"
#include "core/optimizer/gradient_stats.h"

namespace sluice::compress {

static_assert(std::endian::native == std::endian::little,
              "sparse gradients are little-endian and written as they lie");

namespace {

void write_indices(std::span<const std::uint32_t> kept, std::int64_t element_count,
                   std::span<std::uint32_t> counts, std::uint16_t* indices) {
  std::fill(counts.begin(), counts.end(), 0u);
  std::int64_t before = -1;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const std::int64_t index = kept[i];
    CHECK_GT(index, before);
    before = index;
    ++counts[static_cast<std::size_t>(index / kTileElements)];
    indices[i] = static_cast<std::uint16_t>(index % kTileElements);
  }
  CHECK_LT(before, element_count);
}

void write_values(std::span<const float> kept, optimizer::GradientKind kind, std::byte* values) {
  const auto count = static_cast<std::int64_t>(kept.size());
  auto* halves = reinterpret_cast<std::uint16_t*>(values);
  switch (kind) {
    case optimizer::GradientKind::fp32:
      std::copy(kept.begin(), kept.end(), reinterpret_cast<float*>(values));
      return;
    case optimizer::GradientKind::bf16:
      return optimizer::narrow(kept.data(), Float16Kind::bf16, halves, count);
    case optimizer::GradientKind::fp16:
      return optimizer::narrow(kept.data(), Float16Kind::fp16, halves, count);
  }
}

}  // namespace

std::int64_t encode_sparse_gradient(const KeptElements& kept, std::int64_t element_count,
                                    optimizer::GradientKind value_kind,
                                    std::span<std::byte> bytes) {
  const auto kept_count = static_cast<std::int64_t>(kept.indices.size());
  const SparseLayout layout = sparse_layout(element_count, kept_count, value_kind);
  CHECK_LE(element_count, kMaxElements);
  CHECK_EQ(kept.values.size(), kept.indices.size());
  CHECK_LE(kept_count, element_count);
  CHECK_LE(layout.size_bytes, static_cast<std::int64_t>(bytes.size()));
  CHECK_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0u);

  // Between the sections lie fewer than 64 bytes; what is not overwritten below stays zero.
  for (const std::int64_t end : {layout.indices_offset, layout.values_offset, layout.size_bytes}) {
    std::memset(bytes.data() + end - 64, 0, 64);
  }
  const SparseHeader header{.value_kind = static_cast<std::uint32_t>(value_kind),
                            .element_count = static_cast<std::uint64_t>(element_count),
                            .kept_count = static_cast<std::uint64_t>(kept_count),
                            .tile_count = static_cast<std::uint32_t>(layout.tile_count)};
  std::memcpy(bytes.data(), &header, sizeof(header));
  auto* counts = reinterpret_cast<std::uint32_t*>(bytes.data() + layout.counts_offset);
  write_indices(kept.indices, element_count, {counts, static_cast<std::size_t>(layout.tile_count)},
                reinterpret_cast<std::uint16_t*>(bytes.data() + layout.indices_offset));
  write_values(kept.values, value_kind, bytes.data() + layout.values_offset);
  return layout.size_bytes;
}

}  // namespace sluice::compress
