// The checksum kernel against the library's XXH3-64, for every size and place that can differ.

#include "storage/state/checksum.h"

#include <catch2/catch.hpp>
#include <random>

#include "hls/kernels/kernels.h"
#include "hls/sim/processes.h"

using namespace sluice;
using namespace sluice::hls_kernels;

namespace {

std::uint64_t by_kernel(const std::vector<Word>& words, std::uint64_t first, std::uint64_t size) {
  Word result(0u);
  checksum(words.data(), &result, first, size);
  return lane64(result, 0);
}

std::uint64_t by_library(const std::vector<Word>& words, std::uint64_t first, std::uint64_t size) {
  return state::checksum(std::as_bytes(std::span(words)).subspan(first, size));
}

std::vector<Word> random_words(std::size_t count) {
  std::mt19937 random(1);
  std::vector<Word> words(count);
  for (Word& word : words)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      word[lane] = static_cast<std::uint32_t>(random());
  return words;
}

}  // namespace

TEST_CASE("every even size to three blocks has the library's digest") {
  const std::vector<Word> words = random_words(64);
  for (std::uint64_t size = 2; size <= 3200; size += 2) {
    CAPTURE(size);
    REQUIRE(by_kernel(words, 0, size) == by_library(words, 0, size));
  }
}

TEST_CASE("every even place in a word gives the digest of the bytes from there") {
  const std::vector<Word> words = random_words(64);
  for (std::uint64_t first = 0; first <= 200; first += 2) {
    for (const std::uint64_t size : {2, 16, 62, 64, 66, 128, 240, 242, 1022, 1024, 1026, 2050}) {
      CAPTURE(first, size);
      REQUIRE(by_kernel(words, first, size) == by_library(words, first, size));
    }
  }
}

TEST_CASE("a long input has the library's digest, also with processes as threads") {
  const std::vector<Word> words = random_words(50'000);
  CHECK(by_kernel(words, 6, 3'199'900) == by_library(words, 6, 3'199'900));
  const hls_sim::ThreadsScope threads;
  CHECK(by_kernel(words, 6, 100'000) == by_library(words, 6, 100'000));
}
