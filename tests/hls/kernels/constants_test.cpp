// The constants that kernels and host share, by value: neither includes the other's.

#include <catch2/catch.hpp>
#include <cstring>

#include "core/compress/sparse_gradient.h"
#include "core/optimizer/update_rule.h"
#include "hls/kernels/gradient.h"
#include "soft/smartssd/rates.h"
#include "storage/state/commit_record.h"

using namespace sluice;

TEST_CASE("kernels and host mean the same by formats, tiles and headers") {
  namespace k = hls_kernels;
  CHECK(std::int64_t{k::kTileElements} == compress::kTileElements);
  CHECK(k::kMaxElements == static_cast<std::uint64_t>(compress::kMaxElements));
  CHECK(static_cast<int>(k::kGradientFp32) == static_cast<int>(optimizer::GradientKind::fp32));
  CHECK(static_cast<int>(k::kGradientBf16) == static_cast<int>(optimizer::GradientKind::bf16));
  CHECK(static_cast<int>(k::kGradientFp16) == static_cast<int>(optimizer::GradientKind::fp16));
  CHECK(std::uint64_t{k::kGradientSparse} == soft_smartssd::kSparseGradient);
  CHECK(k::kSparseVersion == compress::kSparseVersion);
  std::uint32_t magic[2];
  std::memcpy(magic, compress::kSparseMagic.data(), sizeof magic);
  CHECK(magic[0] == k::kMagicLow);
  CHECK(magic[1] == k::kMagicHigh);
  // Word 1 and 2 of a result have a 64-bit lane for each array.
  CHECK(state::kMaxVariables <= static_cast<std::size_t>(k::kLanes / 2));
}

TEST_CASE("a plan places the sections of a sparse gradient where the host's layout does") {
  namespace k = hls_kernels;
  for (const std::int64_t elements : {1, 16384, 16385, 300'000, 5'000'000}) {
    for (const std::int64_t kept : {std::int64_t{0}, std::int64_t{1}, elements / 3, elements}) {
      for (std::uint32_t kind = 0; kind < 3; ++kind) {
        const auto layout =
            compress::sparse_layout(elements, kept, static_cast<optimizer::GradientKind>(kind));
        k::Word header(0u);
        compress::SparseHeader fields;
        fields.value_kind = kind;
        fields.element_count = static_cast<std::uint64_t>(elements);
        fields.kept_count = static_cast<std::uint64_t>(kept);
        fields.tile_count = static_cast<std::uint32_t>(layout.tile_count);
        std::memcpy(&header[0], &fields, sizeof fields);
        const auto words = static_cast<std::uint64_t>(layout.size_bytes / k::kWordBytes);
        const auto plan = k::plan_sparse(header, static_cast<std::uint64_t>(elements), words);
        CAPTURE(elements, kept, kind);
        REQUIRE(plan.status == k::kUpdated);
        CHECK(static_cast<std::int64_t>(plan.indices_word) * k::kWordBytes ==
              layout.indices_offset);
        CHECK(static_cast<std::int64_t>(plan.values_word) * k::kWordBytes == layout.values_offset);
        CHECK(plan.values_word + plan.value_words() == words);
        CHECK(k::plan_sparse(header, static_cast<std::uint64_t>(elements), words - 1).status ==
              k::kCutGradient);
      }
    }
  }
}
