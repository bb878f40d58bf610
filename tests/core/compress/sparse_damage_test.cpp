// What is not a sparse gradient is refused with a reason and an offset, and whatever is not refused
// decodes inside its bounds.

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "core/compress/sparse_gradient.h"
#include "tests/core/compress/gradients.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::compress {
namespace {

using optimizer::GradientKind;

constexpr std::int64_t kCount = 2 * kTileElements + 100;  // three tiles, the last of 100 elements
constexpr std::int64_t kEvery = 50;

AlignedBytes whole() {
  return sparse_of(optimizer::normal_floats(kCount, 1, 301), kEvery, GradientKind::fp32);
}

const SparseLayout kLayout = sparse_layout(kCount, divide_up(kCount, kEvery), GradientKind::fp32);

template <class T>
void put(AlignedBytes& sparse, std::int64_t offset, T value) {
  std::memcpy(sparse.bytes().data() + offset, &value, sizeof(value));
}

template <class T>
T value_at(AlignedBytes& sparse, std::int64_t offset) {
  T value;
  std::memcpy(&value, sparse.bytes().data() + offset, sizeof(value));
  return value;
}

// Decodes everything that was accepted, into a block of just the size of a tile.
void decode(const SparseGradientView& view) {
  for (std::int64_t tile = 0; tile < view.tile_count(); ++tile) {
    std::vector<float> out(static_cast<std::size_t>(view.elements_in(tile)));
    scatter_tile(view, tile, out.data());
  }
}

void check_refused(AlignedBytes& sparse, const std::string& message,
                   std::int64_t expected_count = kCount, ErrorCode code = ErrorCode::corrupt) {
  const auto view = open_sparse_gradient(sparse.bytes(), expected_count);
  REQUIRE(!view.ok());
  CHECK(view.error().code() == code);
  CHECK_THAT(view.error().message(), Catch::Contains(message));
}

template <class T>
void check_refused_with(std::int64_t offset, T value, const std::string& message,
                        ErrorCode code = ErrorCode::corrupt) {
  AlignedBytes sparse = whole();
  put(sparse, offset, value);
  check_refused(sparse, message, kCount, code);
}

TEST_CASE("a foreign header is refused, with what and where") {
  check_refused_with(0, 'X', "at offset 0 are not SLCSPARS");
  check_refused_with(8, 2u, "version 2 at offset 8, this program reads version 1",
                     ErrorCode::unsupported);
  check_refused_with(8, 0u, "version 0 at offset 8", ErrorCode::unsupported);
  check_refused_with(12, 3u, "value kind 3 at offset 12");
  check_refused_with(24, std::uint64_t{1} << 40, "kept (offset 24)");
  check_refused_with(24, std::uint64_t{0} - 1, "kept (offset 24)");
  check_refused_with(32, 4u, "4 tiles (offset 32), but 32868 elements have 3");
  check_refused_with(36, 8192u, "tiles of 8192 elements (offset 36)");
  check_refused_with(63, '\1', "reserved byte at offset 63 is 1");
}

TEST_CASE("another subgroup's gradient is refused") {
  AlignedBytes sparse = whole();
  check_refused(sparse, "32868 elements (offset 16), expected 32869", kCount + 1);
  check_refused_with(16, std::uint64_t{0} - 1, "expected 32868");
}

TEST_CASE("a buffer that ends early is refused, wherever it ends") {
  AlignedBytes sparse = whole();
  for (std::size_t size = 0; size < sparse.bytes().size(); ++size) {
    if (size > 200 && size % 61 != 0 && size + 70 < sparse.bytes().size()) continue;
    AlignedBytes cut(sparse.bytes().first(size));
    const auto view = open_sparse_gradient(cut.bytes(), kCount);
    REQUIRE(!view.ok());
    CHECK_THAT(view.error().message(), Catch::Contains(fmt::format("ends at offset {}", size)));
  }
}

TEST_CASE("counts that are too large or do not sum are refused") {
  const std::int64_t first = kLayout.counts_offset;
  AlignedBytes sparse = whole();
  const auto count = value_at<std::uint32_t>(sparse, first);
  check_refused_with(first, count + 1, "(offset 64) sum to 659, but 658 elements are kept");
  check_refused_with(first, count - 1, "(offset 64) sum to 657, but 658 elements are kept");
  check_refused_with(first + 4, 16'385u, "tile 1 has 16384 elements and keeps 16385 (offset 68)");
  check_refused_with(first + 8, 101u, "tile 2 has 100 elements and keeps 101 (offset 72)");
  check_refused_with(first, 0xffffffffu, "tile 0 has 16384 elements and keeps 4294967295");
  // One kept element less: where its index lay there should be padding.
  check_refused_with(24, std::uint64_t{657},
                     fmt::format("padding at offset {}", kLayout.indices_offset + 2 * 657));
}

TEST_CASE("indices that leave their tile or the subgroup are refused") {
  AlignedBytes sparse = whole();
  const auto in_first = value_at<std::uint32_t>(sparse, kLayout.counts_offset);
  const std::int64_t last_of_first = kLayout.indices_offset + 2 * (in_first - 1);
  check_refused_with(last_of_first, std::uint16_t{16'384},
                     fmt::format("index 16384 in tile 0 (offset {})", last_of_first));
  const std::int64_t last = kLayout.indices_offset + 2 * (divide_up(kCount, kEvery) - 1);
  check_refused_with(last, std::uint16_t{100}, fmt::format("(offset {}), which has 100", last));
}

TEST_CASE("indices that are twice there or out of order are refused") {
  const std::int64_t second = kLayout.indices_offset + 2;
  check_refused_with(second, std::uint16_t{0},
                     fmt::format("index 0 in tile 0 (offset {}) follows 0", second));
  check_refused_with(second + 4, std::uint16_t{20}, "index 20 in tile 0");
  check_refused_with(kLayout.indices_offset, std::uint16_t{0xffff}, "follows 65535");
}

TEST_CASE("padding that is not zero is refused") {
  check_refused_with(kLayout.indices_offset - 1, '\5',
                     fmt::format("padding at offset {} is 5", kLayout.indices_offset - 1));
  check_refused_with(kLayout.values_offset - 1, '\5', "padding at offset");
  check_refused_with(kLayout.size_bytes - 1, '\5', "padding at offset");
}

TEST_CASE("whatever bytes change, it is refused or decodes inside its bounds") {
  std::mt19937 random(311);
  int refused = 0;
  for (const GradientKind kind : {GradientKind::fp32, GradientKind::fp16}) {
    AlignedBytes good = sparse_of(optimizer::normal_floats(kCount, 1, 312), kEvery, kind);
    const std::size_t size = good.bytes().size();
    for (int round = 0; round < 10'000; ++round) {
      AlignedBytes bad(good.bytes());
      const std::size_t changes = 1 + random() % 4;
      for (std::size_t k = 0; k < changes; ++k) {
        // Half of them hit header and counts.
        const std::size_t offset = random() % (random() % 2 == 0 ? 128 : size);
        bad.bytes()[offset] ^= static_cast<std::byte>(1 + random() % 255);
      }
      const auto view = open_sparse_gradient(bad.bytes(), kCount);
      refused += !view.ok();
      if (view.ok() && round % 10 == 0) decode(*view);
    }
  }
  CHECK(refused > 10'000);
  CHECK(refused < 20'000);  // a changed value cannot be seen
}

TEST_CASE("arbitrary bytes behind a right header are refused or decode inside their bounds") {
  std::mt19937 random(321);
  AlignedBytes good = whole();
  for (int round = 0; round < 300; ++round) {
    AlignedBytes bad(good.bytes());
    for (std::size_t i = 64 + 64 * (random() % 2); i < bad.bytes().size(); ++i)
      bad.bytes()[i] = static_cast<std::byte>(random());
    CHECK(!open_sparse_gradient(bad.bytes(), kCount).ok());
  }
}

}  // namespace
}  // namespace sluice::compress
