#pragma once
// XXH3-64 of all arrays of a split state at once (xxh3.h has the function). An update takes 16
// cycles a group, in which the arrays have 12 words at most, so that one row of multipliers does
// for all of them. The cycles of a group go round: cycle 4 k + a is array a's.
//
// An array takes its words as the update does, a group's in a group's cycles, so no FIFO has to
// hold more than a few. A block's scales come behind its codes and wait for cycles that are left,
// in the next groups, or in those after the last one.
//
// Thread contract: processes of a dataflow region.

#include <cstdint>

#include "hls/kernels/stored_array.h"
#include "hls/kernels/xxh3_digest.h"

namespace sluice::hls_kernels {

inline constexpr int kHashSlots = 4;     // arrays that take turns
inline constexpr int kSlotsInGroup = 4;  // of one array
inline constexpr int kGroupCycles = kHashSlots * kSlotsInGroup;
// Up to ten words are left after the last group: eight of scales, two that could not be taken.
inline constexpr int kDrainGroups = 3;
static_assert(kDrainGroups * kSlotsInGroup >= 10, "the last scales are taken");

struct ArraySum {
  std::uint64_t lanes[kAccumulators];
  std::uint32_t array;
  bool is_whole;
};
using ArraySumStream = hls::stream<ArraySum, 16>;
using ArrayTailStream = hls::stream<HashTail, 2>;
using ArrayHashedStream = hls::stream<Hashed, 2>;

// Which of an array's words are taken when.
class HashTurn {
 public:
  void begin(const StoredShape& shape, std::uint64_t element_count) {
    words_ = stored_words(shape, element_count);
    group_words_ = static_cast<std::uint32_t>(shape.group_words());
    scale_words_ = static_cast<std::uint32_t>(shape.block_scale_words());
    due_ = 0;
    taken_ = 0;
  }

  // In the first cycle of a group.
  void add_group(bool is_end_of_block) {
    due_ += group_words_ + (is_end_of_block ? scale_words_ : 0u);
  }
  bool has_word(bool is_draining) const { return taken_ < words_ && (due_ != 0 || is_draining); }
  void take() {
    if (due_ != 0) due_ -= 1;
    taken_ += 1;
  }

  std::uint64_t taken() const { return taken_; }
  std::uint64_t words() const { return words_; }

 private:
  std::uint64_t words_;
  std::uint64_t taken_;
  std::uint32_t group_words_;
  std::uint32_t scale_words_;
  std::uint32_t due_;
};

template <class Rule>
void sum_arrays(std::uint64_t element_count, std::uint32_t state_format,
                WordStream (&words)[Rule::kStoredCount], ArraySumStream& sums,
                ArrayTailStream& tails) {
  constexpr int kArrays = Rule::kStoredCount;
  static_assert(kArrays <= kHashSlots, "each array has its cycles");
  const std::uint64_t groups = group_count(element_count);
  HashTurn turns[kArrays];
  Word heads[kArrays][kHeadWords];
  Word lasts[kArrays];
  Word previous[kArrays];
  // The front is that of the cycle's array; a sum comes round in four cycles, so that an addition
  // has as many.
  std::uint64_t round[kHashSlots][kAccumulators];
#pragma HLS array_partition variable = turns complete
#pragma HLS array_partition variable = heads complete dim = 0
#pragma HLS array_partition variable = lasts complete
#pragma HLS array_partition variable = previous complete
#pragma HLS array_partition variable = round complete dim = 0
begin_arrays:
  for (int a = 0; a < kArrays; ++a) {
#pragma HLS unroll
    turns[a].begin(shape_of<Rule>(a, state_format), element_count);
    previous[a] = Word(0u);
    lasts[a] = Word(0u);
  clear_heads:
    for (int i = 0; i < kHeadWords; ++i) {
#pragma HLS unroll
      heads[a][i] = Word(0u);
    }
  }
clear_round:
  for (int slot = 0; slot < kHashSlots; ++slot) {
#pragma HLS unroll
  clear_lanes:
    for (int lane = 0; lane < kAccumulators; ++lane) {
#pragma HLS unroll
      round[slot][lane] = 0;
    }
  }
sum_slots:
  for (std::uint64_t i = 0; i < (groups + kDrainGroups) * kGroupCycles; ++i) {
#pragma HLS loop_tripcount min = 64 max = 536870960 avg = 4194352
#pragma HLS pipeline II = 1
    const auto array = static_cast<std::uint32_t>(i % kHashSlots);
    const std::uint64_t group = i / kGroupCycles;
    Word word = Word(0u);
    bool is_taken = false;
    std::uint64_t place = 0;
    std::uint64_t left = 0;
  take_word:
    for (int a = 0; a < kArrays; ++a) {
#pragma HLS unroll
      if (array == static_cast<std::uint32_t>(a)) {
        const bool is_first = i % kGroupCycles < kHashSlots;
        if (is_first && group < groups) {
          turns[a].add_group(group % kGroupsInBlock == kGroupsInBlock - 1);
        }
        is_taken = turns[a].has_word(group >= groups);
        if (is_taken) {
          word = words[a].read();
          place = turns[a].taken();
          turns[a].take();
          left = turns[a].words() - turns[a].taken();
          if (place < kHeadWords) heads[a][place] = word;
          if (left == 1) previous[a] = word;
          if (left == 0) lasts[a] = word;
        }
      }
    }
    // All words but the last are stripes.
    const auto stripe = static_cast<std::uint32_t>(place % kStripesPerBlock);
    const bool is_stripe = is_taken && left != 0;
    ArraySum sum;
    sum.array = array;
    sum.is_whole = stripe == kStripesPerBlock - 1;
  take_round:
    for (int lane = 0; lane < kAccumulators; ++lane) {
#pragma HLS unroll
      sum.lanes[lane] = round[0][lane];
    }
    if (is_stripe) add_stripe(word, static_cast<int>(8 * stripe), sum.lanes);
    const bool is_sent = is_stripe && (sum.is_whole || left == 1);
    if (is_sent) sums.write(sum);
  turn_lanes:
    for (int lane = 0; lane < kAccumulators; ++lane) {
#pragma HLS unroll
    turn_round:
      for (int slot = 0; slot < kHashSlots - 1; ++slot) {
#pragma HLS unroll
        round[slot][lane] = round[slot + 1][lane];
      }
      round[kHashSlots - 1][lane] = is_sent ? 0u : sum.lanes[lane];
    }
  }
send_tails:
  for (int a = 0; a < kArrays; ++a) {
#pragma HLS pipeline off
    const std::uint64_t bytes = stored_bytes(shape_of<Rule>(a, state_format), element_count);
    HashTail tail;
    const auto last_bytes = static_cast<int>(bytes - (turns[a].words() - 1) * kWordBytes);
    tail.last_stripe = last_stripe_of<1>(previous[a], lasts[a], last_bytes);
  copy_head:
    for (int i = 0; i < kHeadWords; ++i) {
#pragma HLS unroll
      tail.head[i] = heads[a][i];
    }
    tails.write(tail);
  }
}

// The accumulators of each array after all its blocks and its last stripe, in the arrays' order.
template <class Rule>
void fold_arrays(std::uint64_t element_count, std::uint32_t state_format, ArraySumStream& sums,
                 ArrayTailStream& tails, ArrayHashedStream& hashed) {
  constexpr int kArrays = Rule::kStoredCount;
  std::uint64_t lanes[kArrays][kAccumulators];
#pragma HLS array_partition variable = lanes complete dim = 0
  std::uint64_t sum_count = 0;
begin_folds:
  for (int a = 0; a < kArrays; ++a) {
#pragma HLS unroll
    const std::uint64_t words = stored_words(shape_of<Rule>(a, state_format), element_count);
    sum_count += (words - 1 + kStripesPerBlock - 1) / kStripesPerBlock;
  begin_lanes:
    for (int lane = 0; lane < kAccumulators; ++lane) {
#pragma HLS unroll
      lanes[a][lane] = kFirstLanes[lane];
    }
  }
fold_array_sums:
  for (std::uint64_t i = 0; i < sum_count; ++i) {
#pragma HLS loop_tripcount min = 0 max = 25165824 avg = 196608
#pragma HLS pipeline II = 16
    const ArraySum sum = sums.read();
  fold_lanes:
    for (int lane = 0; lane < kAccumulators; ++lane) {
#pragma HLS unroll
      const std::uint64_t added = lanes[sum.array][lane] + sum.lanes[lane];
      lanes[sum.array][lane] = sum.is_whole ? scrambled(added, lane) : added;
    }
  }
send_hashed:
  for (int a = 0; a < kArrays; ++a) {
#pragma HLS pipeline off
    const HashTail tail = tails.read();
    Hashed result;
  copy_lanes:
    for (int lane = 0; lane < kAccumulators; ++lane) {
#pragma HLS unroll
      result.lanes[lane] = lanes[a][lane];
    }
    add_stripe(tail.last_stripe, kLastSecretByte, result.lanes);
  copy_hashed_head:
    for (int i = 0; i < kHeadWords; ++i) {
#pragma HLS unroll
      result.head[i] = tail.head[i];
    }
    hashed.write(result);
  }
}

}  // namespace sluice::hls_kernels
