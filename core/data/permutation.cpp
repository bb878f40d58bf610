#include "core/data/permutation.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/split_mix.h"

namespace sluice::data {
namespace {

// Luby and Rackoff: four rounds of a random function make a permutation that no observer of the
// order can tell from a random one; two more because the halves here may be only a bit wide.
constexpr std::uint64_t kRounds = 6;

}  // namespace

Permutation::Permutation(std::uint64_t key, std::uint64_t count)
    : key_(key), count_(count), half_bits_(1) {
  CHECK_GT(count, 0u);
  half_bits_ = std::max(1, static_cast<int>(std::bit_width(count - 1) + 1) / 2);
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ (split_mix(key_ ^ mix64(round + 1), right) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  CHECK_LT(index, count_);
  std::uint64_t value = encrypt(index);
  while (value >= count_) value = encrypt(value);
  return value;
}

}  // namespace sluice::data
