// What the cycle model (hls/link/estimate.py) counts, counted: each array crosses its FIFO once, a
// word of 16 elements a beat, and a sparse gradient costs a beat a row or a kept element.

#include <catch2/catch.hpp>

#include "hls/sim/processes.h"
#include "tests/hls/kernels/split_subgroup.h"

using namespace sluice;
using namespace sluice::hls_kernels;

namespace {

std::map<std::string, std::uint64_t> beats_of(const SubgroupSpec& spec) {
  Subgroup subgroup(spec);
  const hls_sim::BeatCounts beats;
  run_kernel(subgroup);
  REQUIRE(subgroup.result[0][0] == kUpdated);
  return beats.all();
}

}  // namespace

TEST_CASE("every array of a dense update crosses once, a word a beat") {
  for (const std::int64_t n :
       {std::int64_t{1}, std::int64_t{16}, std::int64_t{17}, 3 * kTile + 5}) {
    auto beats = beats_of({.element_count = n, .gradient_kind = optimizer::GradientKind::bf16});
    const auto words = static_cast<std::uint64_t>((n + 15) / 16);
    CHECK(beats["assembled"] == words);
    CHECK(beats["value_words"] == (words + 1) / 2);  // two to a word, in 16 bits
    CHECK(beats["state"] == 3 * words);
    CHECK(beats["to_store"] == 3 * words);
    CHECK(beats["to_hash_before"] == 3 * words);
    CHECK(beats["to_hash_after"] == 3 * words);
    CHECK(beats["master_weights"] == words);
    CHECK(beats["values"] == 0);
  }
}

TEST_CASE("a sparse gradient crosses as its kept elements, and comes out as rows") {
  const SubgroupSpec spec = {.element_count = 4 * kTile, .is_sparse = true, .density = 0.03};
  Subgroup subgroup(spec);
  const std::uint64_t kept = lane64(subgroup.gradient[0], 3);
  auto beats = beats_of(spec);
  CHECK(beats["values"] == kept);
  CHECK(beats["indices"] == kept);
  CHECK(beats["index_words"] == (kept + 31) / 32);
  CHECK(beats["value_words"] == (kept + 15) / 16);
  CHECK(beats["tile_counts"] == 4);
  CHECK(beats["assembled"] == 4 * kTileRows);
}

TEST_CASE("every array of an update on split state crosses once, in the words that it has") {
  const std::int64_t n = 2 * kBlockElements + 1000;  // 144 groups, the last with 40
  for (const auto kind : {StateFormatKind::exact, StateFormatKind::compact}) {
    SplitSubgroup subgroup({.plain = {.element_count = n}, .format = {kind, 16}});
    std::uint64_t words = 0;
    for (std::int32_t a = 0; a < subgroup.arrays.count; ++a) {
      words += static_cast<std::uint64_t>((subgroup.bytes_of(a) + kWordBytes - 1) / kWordBytes);
    }
    // Scales go beside codes until they are stored: for each array three words or three blocks'.
    const std::uint64_t scales = kind == StateFormatKind::compact ? 3 + 9 : 0;
    const hls_sim::BeatCounts beats;
    run_kernel(subgroup);
    REQUIRE(subgroup.plain.result[0][0] == kUpdated);
    CHECK(beats.of("to_hash_before") == words);
    CHECK(beats.of("to_hash_after") == words);
    CHECK(beats.of("stored") == words - scales);
    CHECK(beats.of("to_store") == words - scales);
    CHECK(beats.of("updated") == 3 * 144 * static_cast<std::uint64_t>(kGroupTurns));
  }
}
