#pragma once
// SplitMix64 as a counter-based generator: value i of stream `key` is a function of the two alone,
// so any part of a random sequence can be made anywhere, in any order, without state.
// (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014.)
//
// Thread contract: plain values; a generator belongs to one thread.

#include <cstdint>

namespace sluice {

// A bijection of 64-bit numbers that mixes every input bit into every output bit.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr std::uint64_t split_mix(std::uint64_t key, std::uint64_t index) {
  return mix64(key + (index + 1) * 0x9e3779b97f4a7c15u);
}

// The top 53 bits as a number in (0, 1]: never 0, so that its logarithm is finite.
constexpr double unit_interval(std::uint64_t bits) {
  return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

}  // namespace sluice
