#pragma once
// The data that crosses the kernels' ports: words of 512 bits, the width of the memory controller.
// Element i of sixteen fp32 is lane i; of 32 16-bit ones, element i is half i % 2 of lane i / 2
// (little-endian, as memory has them).
//
// hls_vector.h and hls_stream.h are Vitis HLS's where v++ compiles, and the stand-ins of
// hls/sim/include elsewhere. Nothing of the project outside hls/ is included by a kernel.
//
// Thread contract: plain values.

#include <hls_vector.h>

#include <cstdint>

namespace sluice::hls_kernels {

inline constexpr int kLanes = 16;  // fp32 elements of a word
inline constexpr int kWordBytes = 64;
using Word = hls::vector<std::uint32_t, kLanes>;
static_assert(sizeof(Word) == kWordBytes, "a word of a 512-bit port has 64 bytes");

inline std::uint64_t lane64(const Word& word, int lane) {
  return static_cast<std::uint64_t>(word[2 * lane + 1]) << 32 | word[2 * lane];
}
inline void set_lane64(Word& word, int lane, std::uint64_t value) {
  word[2 * lane] = static_cast<std::uint32_t>(value);
  word[2 * lane + 1] = static_cast<std::uint32_t>(value >> 32);
}

}  // namespace sluice::hls_kernels
