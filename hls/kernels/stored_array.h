#pragma once
// The arrays of split state as they lie in memory (base/state_format.h), by their shape alone: how
// many bytes an element has, and a group of 64 elements beside them. A block of 64 groups is its
// codes, then its scales, so that
//
//   bytes of an element  = words of codes a group
//   bytes of a scale     = words of scales a whole block
//
// Loaders and stores go from block to block; a group's scale crosses FIFOs beside its codes.
//
// Thread contract: plain values, and processes of a dataflow region.

#include <cstdint>

#include "hls/kernels/dataflow.h"
#include "hls/kernels/kernels.h"
#include "hls/kernels/update.h"

namespace sluice::hls_kernels {

inline constexpr int kGroupSize = 64;
inline constexpr int kGroupsInBlock = 64;
static_assert(kGroupSize == kWordBytes && kGroupsInBlock == kWordBytes,
              "codes of a byte fill a word a group, scales of a byte a word a block");

struct StoredShape {
  int element_shift;  // logarithm of an element's bytes
  int scale_shift;    // logarithm of a scale's bytes
  bool has_scales;    // whole groups then, and a scale each

  int group_words() const { return 1 << element_shift; }
  int block_scale_words() const { return has_scales ? 1 << scale_shift : 0; }
};

inline std::uint64_t group_count(std::uint64_t element_count) {
  return (element_count + kGroupSize - 1) / kGroupSize;
}

inline std::uint64_t stored_bytes(const StoredShape& shape, std::uint64_t element_count) {
#pragma HLS inline
  const std::uint64_t groups = group_count(element_count);
  if (!shape.has_scales) return element_count << shape.element_shift;
  return (groups * kGroupSize << shape.element_shift) + (groups << shape.scale_shift);
}

inline std::uint64_t stored_words(const StoredShape& shape, std::uint64_t element_count) {
#pragma HLS inline
  return (stored_bytes(shape, element_count) + kWordBytes - 1) / kWordBytes;
}

// Array 0 is the bf16 copy, 1 its remainder; array v + 1 is the rule's state array v. Ties of the
// exact format are the signs of what is never negative, or else the remainder's scales.
template <class Rule>
StoredShape shape_of(int array, std::uint32_t state_format) {
#pragma HLS inline
  const bool is_exact = state_format == kStateExact;
  StoredShape shape = {1, 0, false};
  if (array == 1) {
    if (state_format == kStateCompact8) shape.element_shift = 0;
    shape.scale_shift = 3;
    shape.has_scales = is_exact && Rule::kSquareAt + Rule::kSumAt == 0;
  } else if (array == Rule::kMeanAt + 1) {
    shape = {is_exact ? 2 : 0, 0, !is_exact};
  } else if (array == Rule::kSquareAt + 1) {
    shape = {is_exact ? 2 : 0, 2, !is_exact};
  } else if (array == Rule::kSumAt + 1) {
    shape.element_shift = is_exact ? 2 : 1;
  }
  return shape;
}

// A word of codes, and the scale of the group that it is of.
struct CodedWord {
  Word codes;
  std::uint64_t scale;
};
using CodedStream = hls::stream<CodedWord, 64>;

inline void load_plain(const Word* stored, std::uint64_t element_count, StoredShape shape,
                       CodedStream& to_update, WordStream& to_hash) {
  const std::uint64_t words = stored_words(shape, element_count);
load_plain_words:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS loop_tripcount min = 1 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    const Word word = stored[i];
    to_update.write({word, 0});
    to_hash.write(word);
  }
}

inline void store_plain(CodedStream& from, std::uint64_t element_count, StoredShape shape,
                        Word* stored, WordStream& to_hash) {
  const std::uint64_t words = stored_words(shape, element_count);
store_plain_words:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS loop_tripcount min = 1 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    const CodedWord coded = from.read();
    stored[i] = coded.codes;
    to_hash.write(coded.codes);
  }
}

// The scales of a block, SCALE_BYTES each, and as many words.
template <int SCALE_BYTES>
class BlockScales {
 public:
  BlockScales() {
#pragma HLS array_partition variable = words_ complete
  clear_scales:
    for (int i = 0; i < SCALE_BYTES; ++i) words_[i] = Word(0u);
  }

  void put_word(int word, const Word& value) { words_[word] = value; }
  const Word& word(int word) const { return words_[word]; }

  std::uint64_t scale(int group) const {
#pragma HLS inline
    const Word word = words_[group / kInWord];
    const int place = group % kInWord;
    if constexpr (SCALE_BYTES == 1) return word[place / 4] >> (8 * (place % 4)) & 0xffu;
    if constexpr (SCALE_BYTES == 8) return lane64(word, place);
    return word[place % kLanes];
  }
  // The groups of a block come in their order.
  void put_scale(int group, std::uint64_t scale) {
#pragma HLS inline
    Word word = words_[group / kInWord];
    const int place = group % kInWord;
    if (place == 0) word = Word(0u);
    if constexpr (SCALE_BYTES == 1) {
      word[place / 4] |= static_cast<std::uint32_t>(scale) << (8 * (place % 4));
    } else if constexpr (SCALE_BYTES == 8) {
      set_lane64(word, place, scale);
    } else {
      word[place % kLanes] = static_cast<std::uint32_t>(scale);
    }
    words_[group / kInWord] = word;
  }

 private:
  static constexpr int kInWord = kWordBytes / SCALE_BYTES;
  Word words_[SCALE_BYTES];
};

// What a block has of codes and of scales, in words.
struct BlockWords {
  std::uint32_t codes;
  std::uint32_t scales;
};
inline BlockWords block_words(const StoredShape& shape, std::uint64_t element_count,
                              std::uint64_t block) {
#pragma HLS inline
  const std::uint64_t left = element_count - block * (kGroupSize * kGroupsInBlock);
  const bool is_whole = left >= kGroupSize * kGroupsInBlock;
  const auto groups = static_cast<std::uint32_t>(is_whole ? kGroupsInBlock : group_count(left));
  if (shape.has_scales) {
    return {groups << shape.element_shift,
            ((groups << shape.scale_shift) + kWordBytes - 1) / kWordBytes};
  }
  const std::uint64_t bytes = left << shape.element_shift;
  return {static_cast<std::uint32_t>(is_whole ? kGroupsInBlock << shape.element_shift
                                              : (bytes + kWordBytes - 1) / kWordBytes),
          0};
}

// The scales lie behind the codes, and are wanted before them: they are read first and kept, since
// the hash takes the bytes in their order.
template <int SCALE_BYTES>
void load_scaled(const Word* stored, std::uint64_t element_count, StoredShape shape,
                 CodedStream& to_update, WordStream& to_hash) {
  const std::uint64_t blocks = (group_count(element_count) + kGroupsInBlock - 1) / kGroupsInBlock;
  BlockScales<SCALE_BYTES> scales;
  std::uint64_t first = 0;
load_blocks:
  for (std::uint64_t block = 0; block < blocks; ++block) {
#pragma HLS loop_tripcount min = 1 max = 524288 avg = 4096
    const BlockWords words = block_words(shape, element_count, block);
  load_block_scales:
    for (std::uint32_t i = 0; i < words.scales; ++i) {
#pragma HLS loop_tripcount min = 0 max = 8 avg = 1
#pragma HLS pipeline II = 1
      scales.put_word(static_cast<int>(i), stored[first + words.codes + i]);
    }
  load_block_codes:
    for (std::uint32_t i = 0; i < words.codes; ++i) {
#pragma HLS loop_tripcount min = 1 max = 256 avg = 64
#pragma HLS pipeline II = 1
      const Word word = stored[first + i];
      to_update.write({word, scales.scale(static_cast<int>(i >> shape.element_shift))});
      to_hash.write(word);
    }
  hash_block_scales:
    for (std::uint32_t i = 0; i < words.scales; ++i) {
#pragma HLS loop_tripcount min = 0 max = 8 avg = 1
#pragma HLS pipeline II = 1
      to_hash.write(scales.word(static_cast<int>(i)));
    }
    first += words.codes + words.scales;
  }
}

// The scale of a group is that beside its last word.
template <int SCALE_BYTES>
void store_scaled(CodedStream& from, std::uint64_t element_count, StoredShape shape, Word* stored,
                  WordStream& to_hash) {
  const std::uint64_t blocks = (group_count(element_count) + kGroupsInBlock - 1) / kGroupsInBlock;
  BlockScales<SCALE_BYTES> scales;
  std::uint64_t first = 0;
store_blocks:
  for (std::uint64_t block = 0; block < blocks; ++block) {
#pragma HLS loop_tripcount min = 1 max = 524288 avg = 4096
    const BlockWords words = block_words(shape, element_count, block);
  store_block_codes:
    for (std::uint32_t i = 0; i < words.codes; ++i) {
#pragma HLS loop_tripcount min = 1 max = 256 avg = 64
#pragma HLS pipeline II = 1
      const CodedWord coded = from.read();
      scales.put_scale(static_cast<int>(i >> shape.element_shift), coded.scale);
      stored[first + i] = coded.codes;
      to_hash.write(coded.codes);
    }
  store_block_scales:
    for (std::uint32_t i = 0; i < words.scales; ++i) {
#pragma HLS loop_tripcount min = 0 max = 8 avg = 1
#pragma HLS pipeline II = 1
      const Word word = scales.word(static_cast<int>(i));
      stored[first + words.codes + i] = word;
      to_hash.write(word);
    }
    first += words.codes + words.scales;
  }
}

// SCALE_BYTES: of the array's scales in a format that has them; 0: in none.
template <int SCALE_BYTES>
void load_stored(const Word* stored, std::uint64_t element_count, StoredShape shape,
                 CodedStream& to_update, WordStream& to_hash) {
  if constexpr (SCALE_BYTES == 0) {
    load_plain(stored, element_count, shape, to_update, to_hash);
  } else {
    load_scaled<SCALE_BYTES>(stored, element_count, shape, to_update, to_hash);
  }
}

template <int SCALE_BYTES>
void store_stored(CodedStream& from, std::uint64_t element_count, StoredShape shape, Word* stored,
                  WordStream& to_hash) {
  if constexpr (SCALE_BYTES == 0) {
    store_plain(from, element_count, shape, stored, to_hash);
  } else {
    store_scaled<SCALE_BYTES>(from, element_count, shape, stored, to_hash);
  }
}

}  // namespace sluice::hls_kernels
