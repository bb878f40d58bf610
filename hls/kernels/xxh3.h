#pragma once
// XXH3-64 with seed 0 and the default secret, as the state format asks for (docs/state_format.md),
// one stripe of 64 bytes a cycle. The algorithm is that of https://github.com/Cyan4973/xxHash,
// doc/xxhash_spec.md, "XXH3".
//
// A stripe adds eight 32 x 32 products and its own lanes to eight accumulators; after 16 stripes
// the accumulators are scrambled: a 64 x 32 product, whose latency would stand between every 16th
// stripe and the next. The additions are modulo 2^64, so the sum of a block's stripes is made from
// zero, apart from the accumulators; `fold_blocks` adds it and scrambles while the next block's 16
// stripes are summed, and has 16 cycles for what takes fewer than ten.
//
// Thread contract: free functions.

#include <cstdint>

#include "hls/kernels/dataflow.h"
#include "hls/kernels/word.h"

namespace sluice::hls_kernels {

inline constexpr int kAccumulators = 8;
inline constexpr int kStripesPerBlock = 16;
static_assert(kWordBytes == 64, "a stripe of XXH3 is one word");
// Levels that move lanes by 16, 8, 4, 2 and 1.
inline constexpr int kShiftLevels = 5;
static_assert(1 << (kShiftLevels - 1) == kLanes, "a stripe moves by up to a word");
// Where the secret of the last stripe begins.
inline constexpr int kLastSecretByte = 192 - kWordBytes - 7;
// Up to here the digest is another function, of the first bytes alone.
inline constexpr int kShortBytes = 240;
inline constexpr int kHeadWords = 4;
static_assert(kHeadWords * kWordBytes >= kShortBytes, "the head holds every short input");

inline constexpr std::uint64_t kPrime32_1 = 0x9E3779B1u;
inline constexpr std::uint64_t kPrime32_2 = 0x85EBCA77u;
inline constexpr std::uint64_t kPrime32_3 = 0xC2B2AE3Du;
inline constexpr std::uint64_t kPrime64_1 = 0x9E3779B185EBCA87u;
inline constexpr std::uint64_t kPrime64_2 = 0xC2B2AE3D27D4EB4Fu;
inline constexpr std::uint64_t kPrime64_3 = 0x165667B19E3779F9u;
inline constexpr std::uint64_t kPrime64_4 = 0x85EBCA77C2B2AE63u;
inline constexpr std::uint64_t kPrime64_5 = 0x27D4EB2F165667C5u;

// The accumulators before the first stripe.
inline constexpr std::uint64_t kFirstLanes[kAccumulators] = {
    kPrime32_3, kPrime64_1, kPrime64_2, kPrime64_3, kPrime64_4, kPrime32_2, kPrime64_5, kPrime32_1};

// The default secret, little-endian in eights.
inline constexpr std::uint64_t kSecret[24] = {
    0xbe4ba423396cfeb8u, 0x1cad21f72c81017cu, 0xdb979083e96dd4deu, 0x1f67b3b7a4a44072u,
    0x78e5c0cc4ee679cbu, 0x2172ffcc7dd05a82u, 0x8e2443f7744608b8u, 0x4c263a81e69035e0u,
    0xcb00c391bb52283cu, 0xa32e531b8b65d088u, 0x4ef90da297486471u, 0xd8acdea946ef1938u,
    0x3f349ce33f76faa8u, 0x1d4f0bc7c7bbdcf9u, 0x3159b4cd4be0518au, 0x647378d9c97e9fc8u,
    0xc3ebd33483acc5eau, 0xeb6313faffa081c5u, 0x49daf0b751dd0d17u, 0x9e68d429265516d3u,
    0xfca1477d58be162bu, 0xce31d07ad1b8f88fu, 0x280416958f3acb45u, 0x7e404bbbcafbd7afu,
};

// Eight bytes of the secret from any byte.
constexpr std::uint64_t secret_at(int byte) {
  const int place = byte / 8;
  const int shift = 8 * (byte % 8);
  if (shift == 0) return kSecret[place];
  return kSecret[place] >> shift | kSecret[place + 1] << (64 - shift);
}

// The sum of the stripes of one block, or of the part of one at the end.
struct BlockSum {
  std::uint64_t lanes[kAccumulators];
  bool is_whole;  // 16 stripes: the accumulators are scrambled after it
};

// The parts of a digest besides the blocks' sums.
struct HashTail {
  Word last_stripe;  // the last 64 bytes
  Word head[kHeadWords];
};

// One input, hashed as far as the last steps, which all inputs of a kernel share.
struct Hashed {
  std::uint64_t lanes[kAccumulators];
  Word head[kHeadWords];
};

using SumStream = hls::stream<BlockSum, 4>;
using TailStream = hls::stream<HashTail, 2>;
using HashedStream = hls::stream<Hashed, 2>;

// The product and the lane that a stripe adds: secret_byte is where its secret begins.
inline void add_stripe(const Word& stripe, int secret_byte, std::uint64_t (&lanes)[kAccumulators]) {
#pragma HLS inline
add_lanes:
  for (int i = 0; i < kAccumulators; ++i) {
#pragma HLS unroll
    const std::uint64_t value = lane64(stripe, i);
    const std::uint64_t keyed = value ^ secret_at(secret_byte + 8 * i);
    lanes[i ^ 1] += value;
    lanes[i] += (keyed & 0xffffffffu) * (keyed >> 32);
  }
}

// `bytes` ends in `last`, of which `last_bytes` (1 to 64) count; `previous` is the word before it.
// Returns the last 64 bytes. Sizes are multiples of UNIT_BYTES, 1 or 2. Both words go down as in a
// barrel shifter, a power of two of lanes a level: to choose each lane among all would be five
// times the area.
template <int UNIT_BYTES>
Word last_stripe_of(const Word& previous, const Word& last, int last_bytes) {
#pragma HLS inline
  const int halves = last_bytes / 2;
  std::uint32_t lanes[3 * kLanes];  // zeros above
#pragma HLS array_partition variable = lanes complete
lay_lanes:
  for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
    lanes[lane] = previous[lane];
    lanes[kLanes + lane] = last[lane];
    lanes[2 * kLanes + lane] = 0;
  }
move_lanes:
  for (int level = 0; level < kShiftLevels; ++level) {
#pragma HLS unroll
    const bool is_moved = (halves >> (kShiftLevels - level) & 1) != 0;
  move_each:
    for (int lane = 0; lane < 2 * kLanes; ++lane) {
#pragma HLS unroll
      const int from = lane + (1 << (kShiftLevels - 1 - level));
      lanes[lane] = is_moved ? lanes[from] : lanes[lane];
    }
  }
  const bool is_odd = (halves & 1) != 0;
move_halves:
  for (int lane = 0; lane < kLanes + 2 - UNIT_BYTES; ++lane) {
#pragma HLS unroll
    lanes[lane] = is_odd ? lanes[lane] >> 16 | lanes[lane + 1] << 16 : lanes[lane];
  }
  if constexpr (UNIT_BYTES == 1) {
    const bool is_odd_byte = (last_bytes & 1) != 0;
  move_bytes:
    for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
      lanes[lane] = is_odd_byte ? lanes[lane] >> 8 | lanes[lane + 1] << 24 : lanes[lane];
    }
  }
  Word stripe;
take_stripe:
  for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
    stripe[lane] = lanes[lane];
  }
  return stripe;
}

// Sums the stripes of `size_bytes` bytes that come as words. Every stripe but the last is whole and
// begins a word; the last one is the last 64 bytes, wherever they begin.
inline void sum_stripes(std::uint64_t size_bytes, hls::stream<Word, 64>& words, SumStream& sums,
                        TailStream& tails) {
  const std::uint64_t word_count = (size_bytes + kWordBytes - 1) / kWordBytes;
  BlockSum sum = {};
#pragma HLS array_partition variable = sum.lanes complete
  HashTail tail = {};
#pragma HLS array_partition variable = tail.head complete
  Word previous = Word(0u);
  Word last = Word(0u);
sum_words:
  for (std::uint64_t i = 0; i < word_count; ++i) {
#pragma HLS loop_tripcount min = 1 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    previous = last;
    last = words.read();
    if (i < kHeadWords) tail.head[i] = last;
    if (i + 1 < word_count) {
      const int stripe = static_cast<int>(i % kStripesPerBlock);
      add_stripe(last, 8 * stripe, sum.lanes);
      sum.is_whole = stripe == kStripesPerBlock - 1;
      if (sum.is_whole || i + 2 == word_count) {
        sums.write(sum);
        sum = {};
      }
    }
  }
  const int last_bytes = static_cast<int>(size_bytes - (word_count - 1) * kWordBytes);
  tail.last_stripe = last_stripe_of<2>(previous, last, last_bytes);
  tails.write(tail);
}

inline std::uint64_t scrambled(std::uint64_t value, int lane) {
#pragma HLS inline
  return (value ^ value >> 47 ^ kSecret[16 + lane]) * kPrime32_1;
}

// The accumulators after all blocks and the last stripe.
inline void fold_blocks(std::uint64_t size_bytes, SumStream& sums, TailStream& tails,
                        HashedStream& hashed) {
  const std::uint64_t stripe_count = (size_bytes + kWordBytes - 1) / kWordBytes - 1;
  const std::uint64_t sum_count = (stripe_count + kStripesPerBlock - 1) / kStripesPerBlock;
  Hashed result = {};
#pragma HLS array_partition variable = result.lanes complete
begin_lanes:
  for (int lane = 0; lane < kAccumulators; ++lane) {
#pragma HLS unroll
    result.lanes[lane] = kFirstLanes[lane];
  }
fold_sums:
  for (std::uint64_t i = 0; i < sum_count; ++i) {
#pragma HLS loop_tripcount min = 0 max = 8388608 avg = 65536
#pragma HLS pipeline II = 16
    const BlockSum sum = sums.read();
  fold_lanes:
    for (int lane = 0; lane < kAccumulators; ++lane) {
#pragma HLS unroll
      const std::uint64_t added = result.lanes[lane] + sum.lanes[lane];
      result.lanes[lane] = sum.is_whole ? scrambled(added, lane) : added;
    }
  }
  const HashTail tail = tails.read();
  add_stripe(tail.last_stripe, kLastSecretByte, result.lanes);
copy_head:
  for (int i = 0; i < kHeadWords; ++i) {
#pragma HLS unroll
    result.head[i] = tail.head[i];
  }
  hashed.write(result);
}

}  // namespace sluice::hls_kernels
