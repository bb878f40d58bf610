#pragma once
// The last steps of XXH3-64: accumulators to a digest, and the functions of up to 240 bytes, which
// look at the first words only. It runs once an array, so it is made small rather than fast.
//
// Thread contract: free functions.

#include "hls/kernels/xxh3.h"

namespace sluice::hls_kernels {

// The upper half of a 64 x 64 product xor its lower one, of four 32 x 32 products.
inline std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
#pragma HLS inline off
  const std::uint64_t low = (a & 0xffffffffu) * (b & 0xffffffffu);
  const std::uint64_t mid_a = (a >> 32) * (b & 0xffffffffu);
  const std::uint64_t mid_b = (a & 0xffffffffu) * (b >> 32);
  const std::uint64_t high = (a >> 32) * (b >> 32);
  const std::uint64_t cross = (low >> 32) + (mid_a & 0xffffffffu) + mid_b;
  const std::uint64_t upper = high + (mid_a >> 32) + (cross >> 32);
  return upper ^ (cross << 32 | (low & 0xffffffffu));
}

inline std::uint64_t avalanche(std::uint64_t value) {
#pragma HLS inline off
  value ^= value >> 37;
  value *= 0x165667919E3779F9u;
  return value ^ value >> 32;
}

inline std::uint64_t rotated(std::uint64_t value, int by) {
  return value << by | value >> (64 - by);
}

// The first bytes of an input.
class Head {
 public:
  explicit Head(const Word (&words)[kHeadWords]) {
  copy_words:
    for (int i = 0; i < kHeadWords; ++i) {
    copy_lanes:
      for (int lane = 0; lane < kLanes; ++lane) lanes_[i * kLanes + lane] = words[i][lane];
    }
  }

  std::uint32_t byte(int at) const { return lanes_[at / 4] >> (8 * (at % 4)) & 0xffu; }
  std::uint32_t four(int at) const {
    const int shift = 8 * (at % 4);
    if (shift == 0) return lanes_[at / 4];
    return lanes_[at / 4] >> shift | lanes_[at / 4 + 1] << (32 - shift);
  }
  std::uint64_t eight(int at) const {
    return static_cast<std::uint64_t>(four(at + 4)) << 32 | four(at);
  }
  std::uint64_t mixed16(int at, int secret_byte) const {
    return folded_product(eight(at) ^ secret_at(secret_byte),
                          eight(at + 8) ^ secret_at(secret_byte + 8));
  }

 private:
  std::uint32_t lanes_[kHeadWords * kLanes];
};

inline std::uint64_t digest_to_3(const Head& head, int size) {
  const std::uint64_t combined = static_cast<std::uint64_t>(head.byte(0)) << 16 |
                                 static_cast<std::uint64_t>(head.byte(size >> 1)) << 24 |
                                 head.byte(size - 1) | static_cast<std::uint64_t>(size) << 8;
  const std::uint64_t flip = (secret_at(0) & 0xffffffffu) ^ (secret_at(4) & 0xffffffffu);
  std::uint64_t value = combined ^ flip;
  value ^= value >> 33;
  value *= kPrime64_2;
  value ^= value >> 29;
  value *= kPrime64_3;
  return value ^ value >> 32;
}

inline std::uint64_t digest_to_8(const Head& head, int size) {
  const std::uint64_t input =
      head.four(size - 4) + (static_cast<std::uint64_t>(head.four(0)) << 32);
  std::uint64_t value = input ^ secret_at(8) ^ secret_at(16);
  value ^= rotated(value, 49) ^ rotated(value, 24);
  value *= 0x9FB21C651E98DF25u;
  value ^= (value >> 35) + static_cast<std::uint64_t>(size);
  value *= 0x9FB21C651E98DF25u;
  return value ^ value >> 28;
}

inline std::uint64_t swapped(std::uint64_t value) {
  std::uint64_t result = 0;
swap_bytes:
  for (int i = 0; i < 8; ++i) {
#pragma HLS unroll
    result |= (value >> (8 * i) & 0xffu) << (56 - 8 * i);
  }
  return result;
}

inline std::uint64_t digest_to_16(const Head& head, int size) {
  const std::uint64_t low = head.eight(0) ^ secret_at(24) ^ secret_at(32);
  const std::uint64_t high = head.eight(size - 8) ^ secret_at(40) ^ secret_at(48);
  return avalanche(static_cast<std::uint64_t>(size) + swapped(low) + high +
                   folded_product(low, high));
}

inline std::uint64_t digest_to_128(const Head& head, int size) {
  std::uint64_t sum = static_cast<std::uint64_t>(size) * kPrime64_1;
mix_pairs:
  for (int pair = 0; pair < 4; ++pair) {
#pragma HLS pipeline off
    if (pair == 0 || size > 32 * pair) {
      sum += head.mixed16(16 * pair, 32 * pair);
      sum += head.mixed16(size - 16 * (pair + 1), 32 * pair + 16);
    }
  }
  return avalanche(sum);
}

inline std::uint64_t digest_to_240(const Head& head, int size) {
  constexpr int kMaxRounds = kShortBytes / 16;
  const int rounds = size / 16;
  std::uint64_t sum = static_cast<std::uint64_t>(size) * kPrime64_1;
mix_rounds:
  for (int i = 0; i < kMaxRounds; ++i) {
#pragma HLS pipeline off
    if (i == 8) sum = avalanche(sum);
    if (i < rounds) sum += head.mixed16(16 * i, i < 8 ? 16 * i : 16 * (i - 8) + 3);
  }
  return avalanche(sum + head.mixed16(size - 16, 136 - 17));
}

inline std::uint64_t digest_of_long(const Hashed& hashed, std::uint64_t size_bytes) {
  std::uint64_t sum = size_bytes * kPrime64_1;
merge_lanes:
  for (int i = 0; i < kAccumulators; i += 2) {
#pragma HLS pipeline off
    sum += folded_product(hashed.lanes[i] ^ secret_at(11 + 8 * i),
                          hashed.lanes[i + 1] ^ secret_at(19 + 8 * i));
  }
  return avalanche(sum);
}

inline std::uint64_t digest(const Hashed& hashed, std::uint64_t size_bytes) {
#pragma HLS inline off
  if (size_bytes > kShortBytes) return digest_of_long(hashed, size_bytes);
  const Head head(hashed.head);
  const int size = static_cast<int>(size_bytes);
  if (size > 128) return digest_to_240(head, size);
  if (size > 16) return digest_to_128(head, size);
  if (size > 8) return digest_to_16(head, size);
  if (size > 3) return digest_to_8(head, size);
  return digest_to_3(head, size);
}

}  // namespace sluice::hls_kernels
