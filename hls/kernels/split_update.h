#pragma once
// The update of one subgroup whose state is split (base/state_format.h): as update.h's, with the
// codes of state decoded before the rule and encoded behind it. docs/hls.md has the drawing.
//
// A group's scale is known only when its last element is updated, so a group waits: 16 cycles, in
// which the next one is updated.
//
// Rule is one of hls/kernels/rules.h.
//
// Thread contract: calls on disjoint buffers may run at once.

#include <cstdint>

#include "hls/kernels/state_codes.h"
#include "hls/kernels/stored_array.h"
#include "hls/kernels/update.h"
#include "hls/kernels/xxh3_arrays.h"

namespace sluice::hls_kernels {

struct SplitSize {
  std::uint64_t element_count;
  std::uint64_t gradient_words;
  std::uint32_t gradient_format;
  std::uint32_t state_format;
};

// How codes are rounded: base/state_codec.h's CodeRounding.
struct SplitRounding {
  std::uint64_t first_flat_index;
  std::uint32_t key;
};

// What is computed in one cycle of one state array: the elements side by side.
using Turn = hls::vector<std::uint32_t, kUpdateLanes>;
using TurnStream = hls::stream<Turn, 8>;
inline constexpr int kGroupTurns = kGroupSize / kUpdateLanes;
static_assert(kGroupTurns == kGroupCycles, "the hash keeps up with the update");
static_assert(kUpdateLanes == 4, "four codes of a byte are a lane");

// Turns that a word of codes takes, less one: the turn's bits that are 0 where one begins.
inline std::uint32_t turns_mask(const StoredShape& shape) {
#pragma HLS inline
  return (static_cast<std::uint32_t>(kGroupTurns) >> shape.element_shift) - 1;
}

// Element `lane` of the first ones of a word.
inline std::uint32_t code_of(const Word& word, int element_shift, int lane) {
#pragma HLS inline
  const std::uint32_t byte = word[0] >> (8 * lane) & 0xffu;
  const std::uint32_t half = word[lane / 2] >> (16 * (lane % 2)) & 0xffffu;
  return element_shift == 0 ? byte : element_shift == 1 ? half : word[lane];
}

// The word with the codes of its first turn gone: one, two or four lanes of it.
inline Word without_turn(const Word& word, int element_shift) {
#pragma HLS inline
  Word shifted;
shift_codes_down:
  for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
    const std::uint32_t by_one = lane + 1 < kLanes ? word[(lane + 1) % kLanes] : 0u;
    const std::uint32_t by_two = lane + 2 < kLanes ? word[(lane + 2) % kLanes] : 0u;
    const std::uint32_t by_four = lane + 4 < kLanes ? word[(lane + 4) % kLanes] : 0u;
    shifted[lane] = element_shift == 0 ? by_one : element_shift == 1 ? by_two : by_four;
  }
  return shifted;
}

// The word with the codes of a turn behind its last ones.
inline Word with_turn(const Word& word, int element_shift, const Turn& codes) {
#pragma HLS inline
  const std::uint32_t bytes = codes[0] | codes[1] << 8 | codes[2] << 16 | codes[3] << 24;
  Word made = without_turn(word, element_shift);
  made[12] = element_shift == 2 ? codes[0] : made[12];
  made[13] = element_shift == 2 ? codes[1] : made[13];
  made[14] = element_shift == 2   ? codes[2]
             : element_shift == 1 ? (codes[0] | codes[1] << 16)
                                  : made[14];
  made[15] = element_shift == 2   ? codes[3]
             : element_shift == 1 ? (codes[2] | codes[3] << 16)
                                  : bytes;
  return made;
}

// The two parts of a master weight.
struct MasterCodes {
  std::uint32_t high;
  std::uint32_t low;  // as it lies: 16 or 8 bits
};

inline std::uint32_t decoded_master(const MasterCodes& codes, std::uint32_t state_format,
                                    bool is_tie) {
#pragma HLS inline
  const std::uint32_t low = state_format == kStateCompact8 ? codes.low << 8 : codes.low;
  // Two's complement of 16 bits.
  const std::uint32_t borrow = (low >> 15 & 1u) != 0 ? 0xffff0000u : 0u;
  return (codes.high << 16) + (low | borrow) + (is_tie ? 0x10000u : 0u);
}

// As it lies, for lanes past the last element: encoded_master() of it gives the same codes.
inline std::uint32_t joined_master(const MasterCodes& codes, std::uint32_t state_format) {
#pragma HLS inline
  return codes.high << 16 | (state_format == kStateCompact8 ? codes.low << 8 : codes.low);
}

inline MasterCodes encoded_master(std::uint32_t bits, std::uint32_t state_format,
                                  std::uint32_t hash, bool is_there) {
#pragma HLS inline
  const bool is_byte = state_format == kStateCompact8;
  const std::uint32_t rounded = is_byte && is_there ? (bits + (hash >> 8 & 0xffu)) & ~0xffu : bits;
  const std::uint32_t nearest =
      state_format == kStateExact ? bf16_from_fp32(rounded) : (rounded + 0x8000u) >> 16;
  return {is_there ? nearest : rounded >> 16, is_byte ? rounded >> 8 & 0xffu : rounded & 0xffffu};
}

// One element of state array `array` but the master weights, and its code. The exact format's ties
// are still in its sign.
template <class Rule>
std::uint32_t decoded_state(int array, bool is_exact, std::uint32_t code, std::uint64_t scale) {
#pragma HLS inline
  const auto of_group = static_cast<std::uint32_t>(scale);
  if (array == Rule::kMeanAt) return is_exact ? code : decoded_mean(code, of_group);
  if (array == Rule::kSquareAt) return is_exact ? code : decoded_square(code, of_group);
  return is_exact ? code : code << 16;
}

template <class Rule>
std::uint32_t encoded_state(int array, bool is_exact, std::uint32_t bits, std::uint32_t largest,
                            std::uint32_t hash, bool is_there) {
#pragma HLS inline
  if (is_exact) return bits;
  if (array == Rule::kMeanAt) return is_there ? mean_code(bits, largest >> 23, hash) : 0u;
  if (array == Rule::kSquareAt) return is_there ? square_code(bits, largest, hash) : 0u;
  return (is_there ? bits + (hash & 0xffffu) : bits) >> 16;
}

// One lane of a turn: from codes to what the rule leaves. Lanes past the last element keep what
// they have.
template <class Rule>
void update_lane(const Rule& rule, std::uint32_t gradient, std::uint32_t state_format,
                 const MasterCodes& master, bool is_tie, bool is_there,
                 std::uint32_t (&state)[Rule::kStateCount]) {
#pragma HLS inline
  // Where the exact format's ties are; 0: not in a sign.
  constexpr int kTieAt = Rule::kSquareAt + Rule::kSumAt;
  const bool is_exact = state_format == kStateExact;
  std::uint32_t element[Rule::kStateCount];
copy_element:
  for (int v = 1; v < Rule::kStateCount; ++v) {
#pragma HLS unroll
    element[v] = is_exact && v == kTieAt ? state[v] & ~kSignBit : state[v];
  }
  const bool is_signed_tie = is_exact && kTieAt != 0 && sign_of(state[kTieAt]) != 0;
  element[0] = decoded_master(master, state_format, is_tie || is_signed_tie);
  rule.update(gradient, element);
  const bool is_new_tie = is_exact && kTieAt != 0 && is_rounded_from_tie(element[0]);
  state[0] = is_there ? element[0] : joined_master(master, state_format);
take_element:
  for (int v = 1; v < Rule::kStateCount; ++v) {
#pragma HLS unroll
    const bool is_of_ties = is_exact && v == kTieAt;
    const std::uint32_t plain = is_of_ties ? element[v] & ~kSignBit : element[v];
    const std::uint32_t updated = is_of_ties && is_new_tie ? plain | kSignBit : plain;
    state[v] = is_there ? updated : state[v];
  }
}

template <class Rule>
void update_groups(const Rule& rule, std::uint64_t element_count, std::uint32_t state_format,
                   WordStream& gradient, CodedStream (&stored)[Rule::kStoredCount],
                   TurnStream (&updated)[Rule::kStateCount]) {
  const bool is_exact = state_format == kStateExact;
  const std::uint64_t groups = group_count(element_count);
  Word gradient_word = Word(0u);
  Word codes[Rule::kStoredCount];
  std::uint64_t scales[Rule::kStoredCount];
#pragma HLS array_partition variable = codes complete
#pragma HLS array_partition variable = scales complete
clear_codes:
  for (int a = 0; a < Rule::kStoredCount; ++a) {
#pragma HLS unroll
    codes[a] = Word(0u);
    scales[a] = 0;
  }
update_group_turns:
  for (std::uint64_t i = 0; i < groups * kGroupTurns; ++i) {
#pragma HLS loop_tripcount min = 16 max = 536870912 avg = 4194304
#pragma HLS pipeline II = 1
    const std::uint64_t first = i * kUpdateLanes;
    const std::uint64_t left = first < element_count ? element_count - first : 0;
    const auto turn = static_cast<std::uint32_t>(i % kGroupTurns);
    if (turn % kUpdateTurns == 0 && left != 0) gradient_word = gradient.read();
  read_stored:
    for (int a = 0; a < Rule::kStoredCount; ++a) {
#pragma HLS unroll
      const StoredShape shape = shape_of<Rule>(a, state_format);
      if ((turn & turns_mask(shape)) == 0 && (shape.has_scales || left != 0)) {
        const CodedWord coded = stored[a].read();
        codes[a] = coded.codes;
        if (turn == 0) scales[a] = coded.scale;
      }
    }
    const StoredShape low_shape = shape_of<Rule>(1, state_format);
    Turn turns[Rule::kStateCount];
#pragma HLS array_partition variable = turns complete
  update_each_lane:
    for (int lane = 0; lane < kUpdateLanes; ++lane) {
#pragma HLS unroll
      std::uint32_t state[Rule::kStateCount];
    decode_lane:
      for (int v = 1; v < Rule::kStateCount; ++v) {
#pragma HLS unroll
        const StoredShape shape = shape_of<Rule>(v + 1, state_format);
        const std::uint32_t code = code_of(codes[v + 1], shape.element_shift, lane);
        state[v] = decoded_state<Rule>(v, is_exact, code, scales[v + 1]);
      }
      const MasterCodes master = {code_of(codes[0], 1, lane),
                                  code_of(codes[1], low_shape.element_shift, lane)};
      const bool is_tie = low_shape.has_scales && (scales[1] >> lane & 1u) != 0;
      const bool is_there = static_cast<std::uint64_t>(lane) < left;
      update_lane(rule, gradient_word[lane], state_format, master, is_tie, is_there, state);
    put_lane:
      for (int v = 0; v < Rule::kStateCount; ++v) {
#pragma HLS unroll
        turns[v][lane] = state[v];
      }
    }
  write_turn:
    for (int v = 0; v < Rule::kStateCount; ++v) {
#pragma HLS unroll
      updated[v].write(turns[v]);
    }
    gradient_word = without_turn(gradient_word, 2);
    scales[1] = scales[1] >> kUpdateLanes;
  shift_codes:
    for (int a = 0; a < Rule::kStoredCount; ++a) {
#pragma HLS unroll
      codes[a] = without_turn(codes[a], shape_of<Rule>(a, state_format).element_shift);
    }
  }
}

// The largest magnitude of a turn whose first element is `first`, and of those before it. Missing
// elements take no part.
inline std::uint32_t largest_of(const Turn& turn, std::uint64_t first, std::uint64_t element_count,
                                std::uint32_t before) {
#pragma HLS inline
  std::uint32_t largest = before;
compare_lanes:
  for (int lane = 0; lane < kUpdateLanes; ++lane) {
#pragma HLS unroll
    const std::uint32_t bits = turn[lane] & ~kSignBit;
    const bool is_there = first + static_cast<std::uint64_t>(lane) < element_count;
    largest = is_there && bits > largest ? bits : largest;
  }
  return largest;
}

// That of a group in a stored array, of the largest magnitudes of the state arrays.
template <class Rule>
std::uint64_t scale_of(int array, std::uint64_t ties,
                       const std::uint32_t (&largest)[Rule::kStateCount]) {
#pragma HLS inline
  if (array == 1) return ties;
  if (array == Rule::kMeanAt + 1) return largest[array - 1] >> 23;
  return array == Rule::kSquareAt + 1 ? largest[array - 1] : 0u;
}

// The codes of a group's turn while the next group's comes in.
template <class Rule>
void encode_groups(std::uint64_t element_count, std::uint32_t state_format,
                   const SplitRounding& rounding, TurnStream (&updated)[Rule::kStateCount],
                   CodedStream (&to_store)[Rule::kStoredCount]) {
  constexpr int kStates = Rule::kStateCount;
  const bool is_exact = state_format == kStateExact;
  const StoredShape low_shape = shape_of<Rule>(1, state_format);
  const std::uint64_t groups = group_count(element_count);
  Turn waiting[2][kStates][kGroupTurns];
#pragma HLS array_partition variable = waiting dim = 1 complete
#pragma HLS array_partition variable = waiting dim = 2 complete
  std::uint32_t largest[kStates];   // of the group that comes in
  std::uint32_t encoding[kStates];  // and of the one that is encoded
  Word made[Rule::kStoredCount];
#pragma HLS array_partition variable = largest complete
#pragma HLS array_partition variable = encoding complete
#pragma HLS array_partition variable = made complete
  std::uint64_t ties = 0;
clear_largest:
  for (int v = 0; v < kStates; ++v) {
#pragma HLS unroll
    largest[v] = 0;
    encoding[v] = 0;
  }
clear_made:
  for (int a = 0; a < Rule::kStoredCount; ++a) {
#pragma HLS unroll
    made[a] = Word(0u);
  }
encode_group_turns:
  for (std::uint64_t i = 0; i < (groups + 1) * kGroupTurns; ++i) {
#pragma HLS loop_tripcount min = 32 max = 536870928 avg = 4194320
#pragma HLS pipeline II = 1
#pragma HLS dependence variable = waiting type = inter dependent = false
    const auto turn = static_cast<std::uint32_t>(i % kGroupTurns);
    const auto filled = static_cast<std::uint32_t>(i / kGroupTurns % 2);
    if (i >= kGroupTurns) {
      const std::uint64_t first = (i - kGroupTurns) * kUpdateLanes;
      const std::uint64_t left = first < element_count ? element_count - first : 0;
      const std::uint32_t start = mixed_index(rounding.first_flat_index + first, rounding.key);
      Turn codes[Rule::kStoredCount];
#pragma HLS array_partition variable = codes complete
    encode_each_lane:
      for (int lane = 0; lane < kUpdateLanes; ++lane) {
#pragma HLS unroll
        const std::uint32_t hash = mixed_bits(start + static_cast<std::uint32_t>(lane) * kMixIndex);
        const bool is_there = static_cast<std::uint64_t>(lane) < left;
        const std::uint32_t weight = waiting[1 - filled][0][turn][lane];
        const MasterCodes master = encoded_master(weight, state_format, hash, is_there);
        codes[0][lane] = master.high;
        // Elements that the last group lacks: 0 where the remainder has whole groups.
        codes[1][lane] = is_there || !low_shape.has_scales ? master.low : 0u;
        const bool is_tie = is_exact && is_there && is_rounded_from_tie(weight);
        ties = ties >> 1 | static_cast<std::uint64_t>(is_tie ? 1u : 0u) << 63;
      encode_state:
        for (int v = 1; v < kStates; ++v) {
#pragma HLS unroll
          codes[v + 1][lane] = encoded_state<Rule>(v, is_exact, waiting[1 - filled][v][turn][lane],
                                                   encoding[v], hash, is_there);
        }
      }
    write_codes:
      for (int a = 0; a < Rule::kStoredCount; ++a) {
#pragma HLS unroll
        const StoredShape shape = shape_of<Rule>(a, state_format);
        made[a] = with_turn(made[a], shape.element_shift, codes[a]);
        const std::uint32_t mask = turns_mask(shape);
        const std::uint64_t word_first =
            first - static_cast<std::uint64_t>(turn & mask) * kUpdateLanes;
        if ((turn & mask) == mask && (shape.has_scales || word_first < element_count)) {
          to_store[a].write({made[a], scale_of<Rule>(a, ties, encoding)});
        }
      }
    }
    if (i < groups * kGroupTurns) {
    take_turn:
      for (int v = 0; v < kStates; ++v) {
#pragma HLS unroll
        const Turn in = updated[v].read();
        waiting[filled][v][turn] = in;
        largest[v] = largest_of(in, i * kUpdateLanes, element_count, largest[v]);
      }
    }
    if (turn == kGroupTurns - 1) {
    next_group:
      for (int v = 0; v < kStates; ++v) {
#pragma HLS unroll
        encoding[v] = largest[v];
        largest[v] = 0;
      }
    }
  }
}

// The digests, one after the other through one instance, and what went wrong.
template <class Rule>
void finish_split(std::uint64_t element_count, std::uint32_t state_format,
                  FaultStream (&faults)[kFaultWriters], ArrayHashedStream& before,
                  ArrayHashedStream& after, Word* result) {
  Word words[2] = {Word(0u), Word(0u)};
digest_stored:
  for (int a = 0; a < Rule::kStoredCount; ++a) {
    const std::uint64_t bytes = stored_bytes(shape_of<Rule>(a, state_format), element_count);
    set_lane64(words[0], a, digest(before.read(), bytes));
    set_lane64(words[1], a, digest(after.read(), bytes));
  }
  result[0] = status_word(first_fault(faults));
  result[1] = words[0];
  result[2] = words[1];
}

// Pointers go by themselves: v++ takes none inside of a struct. Those of a fourth array are null
// where the rule has three.
template <class Rule>
void split_region(const Rule& rule, const SplitSize& size, const SplitRounding& rounding,
                  const Word* gradient_in, const Word* counts, const Word* indices_in,
                  const Word* high_in, Word* high_out, const Word* low_in, Word* low_out,
                  const Word* state1_in, Word* state1_out, const Word* state2_in, Word* state2_out,
                  Word* result) {
#pragma HLS dataflow
  constexpr int kStored = Rule::kStoredCount;
  // Bytes of scales, in any format: of the remainder where no sign holds the ties, and of a mean.
  constexpr int kLowScale = Rule::kSquareAt + Rule::kSumAt == 0 ? 8 : 0;
  constexpr int kFirstScale = Rule::kMeanAt == 1 ? 1 : 0;
  const std::uint64_t count = size.element_count;
  const std::uint32_t format = size.state_format;
  const StoredShape high = shape_of<Rule>(0, format);
  const StoredShape low = shape_of<Rule>(1, format);
  const StoredShape first = shape_of<Rule>(2, format);
  const StoredShape second = shape_of<Rule>(3, format);
  HLS_BEGIN();
  PlanStream plans[kPlanReaders];
  FaultStream faults[kFaultWriters];
  hls::stream<std::uint32_t, 64> tile_counts("tile_counts");
  WordStream value_words("value_words"), index_words("index_words");
  WordStream dense("dense"), gradient("assembled");
  ValueStream values("values");
  IndexStream indices("indices");
  CodedStream stored[kStored], to_store[kStored];
  TurnStream updated[Rule::kStateCount];
  WordStream to_hash_before[kStored], to_hash_after[kStored];
  ArraySumStream sums_before("sums_before"), sums_after("sums_after");
  ArrayTailStream tails_before("tails_before"), tails_after("tails_after");
  ArrayHashedStream hashed_before("hashed_before"), hashed_after("hashed_after");
  HLS_NAME(plans, "plans");
  HLS_NAME(faults, "faults");
  HLS_NAME(stored, "stored");
  HLS_NAME(to_store, "to_store");
  HLS_NAME(updated, "updated");
  HLS_NAME(to_hash_before, "to_hash_before");
  HLS_NAME(to_hash_after, "to_hash_after");

  HLS_PROCESS(plan_gradient(counts, count, size.gradient_words, size.gradient_format, plans,
                            tile_counts, faults[0]));
  HLS_PROCESS(load_values(gradient_in, plans[0], value_words));
  HLS_PROCESS(load_indices(indices_in, plans[1], index_words));
  HLS_PROCESS(unpack_values(plans[2], value_words, dense, values, faults[2]));
  HLS_PROCESS(unpack_indices(plans[3], index_words, indices, faults[3]));
  HLS_PROCESS(assemble(plans[4], dense, tile_counts, indices, values, gradient, faults[1]));
  HLS_PROCESS(load_stored<0>(high_in, count, high, stored[0], to_hash_before[0]));
  HLS_PROCESS(load_stored<kLowScale>(low_in, count, low, stored[1], to_hash_before[1]));
  HLS_PROCESS(load_stored<kFirstScale>(state1_in, count, first, stored[2], to_hash_before[2]));
  if constexpr (kStored == 4) {
    HLS_PROCESS(load_stored<4>(state2_in, count, second, stored[3], to_hash_before[3]));
  }
  HLS_PROCESS(update_groups(rule, count, format, gradient, stored, updated));
  HLS_PROCESS(encode_groups<Rule>(count, format, rounding, updated, to_store));
  HLS_PROCESS(store_stored<0>(to_store[0], count, high, high_out, to_hash_after[0]));
  HLS_PROCESS(store_stored<kLowScale>(to_store[1], count, low, low_out, to_hash_after[1]));
  HLS_PROCESS(store_stored<kFirstScale>(to_store[2], count, first, state1_out, to_hash_after[2]));
  if constexpr (kStored == 4) {
    HLS_PROCESS(store_stored<4>(to_store[3], count, second, state2_out, to_hash_after[3]));
  }
  HLS_PROCESS(sum_arrays<Rule>(count, format, to_hash_before, sums_before, tails_before));
  HLS_PROCESS(fold_arrays<Rule>(count, format, sums_before, tails_before, hashed_before));
  HLS_PROCESS(sum_arrays<Rule>(count, format, to_hash_after, sums_after, tails_after));
  HLS_PROCESS(fold_arrays<Rule>(count, format, sums_after, tails_after, hashed_after));
  HLS_PROCESS(finish_split<Rule>(count, format, faults, hashed_before, hashed_after, result));
  HLS_END();
}

// Nothing is read or written, but the result, where the arguments cannot be.
template <class Rule>
void split_subgroup(const Rule& rule, const SplitSize& size, const SplitRounding& rounding,
                    const Word* gradient_in, const Word* counts, const Word* indices_in,
                    const Word* high_in, Word* high_out, const Word* low_in, Word* low_out,
                    const Word* state1_in, Word* state1_out, const Word* state2_in,
                    Word* state2_out, Word* result) {
  const bool is_known = size.element_count >= 1 && size.element_count <= kMaxElements &&
                        size.gradient_format <= kGradientSparse &&
                        size.state_format >= kStateExact && size.state_format <= kStateCompact8 &&
                        rounding.first_flat_index % kGroupSize == 0;
  if (is_known) {
    split_region(rule, size, rounding, gradient_in, counts, indices_in, high_in, high_out, low_in,
                 low_out, state1_in, state1_out, state2_in, state2_out, result);
  } else {
    result[0] = status_word({kBadArguments, 0});
  }
}

}  // namespace sluice::hls_kernels
