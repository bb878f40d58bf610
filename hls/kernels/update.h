#pragma once
// The update of one subgroup: one dataflow region for every rule, gradient and output. Each array
// is read once and written once, a word a cycle, with its XXH3-64 made in passing, before and
// after. docs/hls.md has the drawing.
//
// Rule is one of hls/kernels/rules.h.
//
// Thread contract: calls on disjoint buffers may run at once.

#include <cstdint>

#include "hls/kernels/gradient.h"
#include "hls/kernels/rules.h"
#include "hls/kernels/xxh3_digest.h"

namespace sluice::hls_kernels {

struct UpdateSize {
  std::uint64_t element_count;
  std::uint64_t gradient_words;
  std::uint32_t gradient_format;
  std::uint32_t parameter_format;

  std::uint64_t words() const { return (element_count + kLanes - 1) / kLanes; }
  std::uint64_t state_bytes() const { return 4 * element_count; }
};

inline constexpr int kFaultWriters = 4;

inline void load_state(const Word* state, std::uint64_t words, WordStream& to_update,
                       WordStream& to_hash) {
load_state_words:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS loop_tripcount min = 1 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    const Word word = state[i];
    to_update.write(word);
    to_hash.write(word);
  }
}

inline void store_state(WordStream& from, std::uint64_t words, Word* state) {
store_state_words:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS loop_tripcount min = 1 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    state[i] = from.read();
  }
}

// Elements that are computed side by side, so that a word takes four turns. The bank takes at least
// five cycles for a word of every array (20 bytes a parameter at 64 a cycle), so four are no
// slower, and the arithmetic, most of the area, is a quarter.
inline constexpr int kUpdateLanes = 4;
inline constexpr int kUpdateTurns = kLanes / kUpdateLanes;
static_assert(kLanes % kUpdateLanes == 0, "a word is whole turns");

// The word with its first lanes gone, and others behind its last ones. By constant distances: to
// choose lanes by the turn would cost a multiplexer each.
inline Word shifted_in(const Word& word, const std::uint32_t (&lanes)[kUpdateLanes]) {
#pragma HLS inline
  Word shifted;
shift_down:
  for (int lane = 0; lane < kLanes - kUpdateLanes; ++lane) {
#pragma HLS unroll
    shifted[lane] = word[lane + kUpdateLanes];
  }
shift_in:
  for (int lane = 0; lane < kUpdateLanes; ++lane) {
#pragma HLS unroll
    shifted[kLanes - kUpdateLanes + lane] = lanes[lane];
  }
  return shifted;
}

// The first lanes of every array. `before` is shifted by them, and `after` and `weights` get them.
// Those past the last element keep their bits, and are zero in `weights`. What is read is never
// what was computed, so that turns overlap.
template <class Rule>
void update_turn(const Rule& rule, Word& gradient, std::uint64_t left,
                 Word (&before)[Rule::kStateCount], Word (&after)[Rule::kStateCount],
                 Word& weights) {
#pragma HLS inline
  std::uint32_t computed[Rule::kStateCount][kUpdateLanes];
  std::uint32_t written[kUpdateLanes];
  const std::uint32_t none[kUpdateLanes] = {};
#pragma HLS array_partition variable = computed dim = 0 complete
#pragma HLS array_partition variable = written complete
update_each_lane:
  for (int lane = 0; lane < kUpdateLanes; ++lane) {
#pragma HLS unroll
    std::uint32_t element[Rule::kStateCount];
  gather_state:
    for (int v = 0; v < Rule::kStateCount; ++v) {
#pragma HLS unroll
      element[v] = before[v][lane];
    }
    rule.update(gradient[lane], element);
    const bool is_there = static_cast<std::uint64_t>(lane) < left;
  scatter_state:
    for (int v = 0; v < Rule::kStateCount; ++v) {
#pragma HLS unroll
      computed[v][lane] = is_there ? element[v] : before[v][lane];
    }
    written[lane] = is_there ? element[0] : 0u;
  }
  gradient = shifted_in(gradient, none);
  weights = shifted_in(weights, written);
shift_state:
  for (int v = 0; v < Rule::kStateCount; ++v) {
#pragma HLS unroll
    before[v] = shifted_in(before[v], none);
    after[v] = shifted_in(after[v], computed[v]);
  }
}

template <class Rule>
void update_lanes(const Rule& rule, std::uint64_t element_count, WordStream& gradient,
                  WordStream (&state)[Rule::kStateCount], WordStream (&to_store)[Rule::kStateCount],
                  WordStream (&to_hash)[Rule::kStateCount], WordStream& master_weights) {
  const std::uint64_t words = (element_count + kLanes - 1) / kLanes;
  Word gradient_word = Word(0u);
  Word weights = Word(0u);
  Word before[Rule::kStateCount];
  Word after[Rule::kStateCount];
#pragma HLS array_partition variable = before complete
#pragma HLS array_partition variable = after complete
update_turns:
  for (std::uint64_t i = 0; i < words * kUpdateTurns; ++i) {
#pragma HLS loop_tripcount min = 4 max = 536870912 avg = 4194304
#pragma HLS pipeline II = 1
    if (i % kUpdateTurns == 0) {
      gradient_word = gradient.read();
    read_state:
      for (int v = 0; v < Rule::kStateCount; ++v) {
#pragma HLS unroll
        before[v] = state[v].read();
      }
    }
    const std::uint64_t first = i * kUpdateLanes;
    const std::uint64_t left = first < element_count ? element_count - first : 0;
    update_turn(rule, gradient_word, left, before, after, weights);
    if (i % kUpdateTurns == kUpdateTurns - 1) {
    write_state:
      for (int v = 0; v < Rule::kStateCount; ++v) {
#pragma HLS unroll
        to_store[v].write(after[v]);
        to_hash[v].write(after[v]);
      }
      master_weights.write(weights);
    }
  }
}

inline std::uint32_t narrowed(std::uint32_t format, std::uint32_t bits) {
#pragma HLS inline
  return format == kParametersBf16 ? bf16_from_fp32(bits) : fp16_from_fp32(bits);
}

// The copy of the master weights that goes up to the host: as they are, or two words to one.
inline void store_parameters(WordStream& master_weights, std::uint64_t words, std::uint32_t format,
                             Word* parameters) {
  const bool is_narrow = format == kParametersBf16 || format == kParametersFp16;
  Word packed = Word(0u);
store_parameter_words:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS loop_tripcount min = 1 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    const Word word = master_weights.read();
    const bool is_upper = i % 2 == 1;
    if (!is_upper) packed = Word(0u);
  narrow_lanes:
    for (int lane = 0; lane < kLanes; lane += 2) {
#pragma HLS unroll
      const std::uint32_t pair = narrowed(format, word[lane]) | narrowed(format, word[lane + 1])
                                                                    << 16;
      packed[lane / 2 + (is_upper ? kLanes / 2 : 0)] = pair;
    }
    if (format == kParametersFp32) parameters[i] = word;
    if (is_narrow && (is_upper || i + 1 == words)) parameters[i / 2] = packed;
  }
}

inline Fault first_fault(FaultStream (&faults)[kFaultWriters]) {
  Fault first;
read_faults:
  for (int i = 0; i < kFaultWriters; ++i) {
    const Fault fault = faults[i].read();
    if (first.status == kUpdated) first = fault;
  }
  return first;
}

inline Word status_word(const Fault& fault) {
  Word word = Word(0u);
  word[0] = fault.status;
  word[1] = fault.tile;
  return word;
}

// The digests, one after the other through one instance, and what went wrong.
template <int STATES>
void finish(FaultStream (&faults)[kFaultWriters], HashedStream (&before)[STATES],
            HashedStream (&after)[STATES], std::uint64_t state_bytes, Word* result) {
  Word words[2] = {Word(0u), Word(0u)};
digest_arrays:
  for (int v = 0; v < STATES; ++v) {
    set_lane64(words[0], v, digest(before[v].read(), state_bytes));
    set_lane64(words[1], v, digest(after[v].read(), state_bytes));
  }
  result[0] = status_word(first_fault(faults));
  result[1] = words[0];
  result[2] = words[1];
}

// Pointers go by themselves: v++ takes none inside of a struct. Those of a third state array are
// null where the rule has two.
template <class Rule>
void update_region(const Rule& rule, const UpdateSize& size, const Word* gradient_in,
                   const Word* counts, const Word* indices_in, const Word* state0_in,
                   Word* state0_out, const Word* state1_in, Word* state1_out, const Word* state2_in,
                   Word* state2_out, Word* parameters, Word* result) {
#pragma HLS dataflow
  constexpr int kStates = Rule::kStateCount;
  const std::uint64_t words = size.words();
  const std::uint64_t bytes = size.state_bytes();
  HLS_BEGIN();
  PlanStream plans[kPlanReaders];
  FaultStream faults[kFaultWriters];
  hls::stream<std::uint32_t, 64> tile_counts("tile_counts");
  WordStream value_words("value_words"), index_words("index_words");
  WordStream dense("dense"), gradient("assembled"), master_weights("master_weights");
  ValueStream values("values");
  IndexStream indices("indices");
  WordStream state[kStates], to_store[kStates], to_hash_before[kStates], to_hash_after[kStates];
  SumStream sums_before[kStates], sums_after[kStates];
  TailStream tails_before[kStates], tails_after[kStates];
  HashedStream hashed_before[kStates], hashed_after[kStates];
  HLS_NAME(plans, "plans");
  HLS_NAME(faults, "faults");
  HLS_NAME(state, "state");
  HLS_NAME(to_store, "to_store");
  HLS_NAME(to_hash_before, "to_hash_before");
  HLS_NAME(to_hash_after, "to_hash_after");
  HLS_NAME(sums_before, "sums_before");
  HLS_NAME(sums_after, "sums_after");
  HLS_NAME(tails_before, "tails_before");
  HLS_NAME(tails_after, "tails_after");
  HLS_NAME(hashed_before, "hashed_before");
  HLS_NAME(hashed_after, "hashed_after");

  HLS_PROCESS(plan_gradient(counts, size.element_count, size.gradient_words, size.gradient_format,
                            plans, tile_counts, faults[0]));
  HLS_PROCESS(load_values(gradient_in, plans[0], value_words));
  HLS_PROCESS(load_indices(indices_in, plans[1], index_words));
  HLS_PROCESS(unpack_values(plans[2], value_words, dense, values, faults[2]));
  HLS_PROCESS(unpack_indices(plans[3], index_words, indices, faults[3]));
  HLS_PROCESS(assemble(plans[4], dense, tile_counts, indices, values, gradient, faults[1]));
  HLS_PROCESS(load_state(state0_in, words, state[0], to_hash_before[0]));
  HLS_PROCESS(load_state(state1_in, words, state[1], to_hash_before[1]));
  if constexpr (kStates == 3) {
    HLS_PROCESS(load_state(state2_in, words, state[2], to_hash_before[2]));
  }
  HLS_PROCESS(update_lanes(rule, size.element_count, gradient, state, to_store, to_hash_after,
                           master_weights));
  HLS_PROCESS(store_state(to_store[0], words, state0_out));
  HLS_PROCESS(store_state(to_store[1], words, state1_out));
  if constexpr (kStates == 3) {
    HLS_PROCESS(store_state(to_store[2], words, state2_out));
  }
  HLS_PROCESS(store_parameters(master_weights, words, size.parameter_format, parameters));
  HLS_PROCESS(sum_stripes(bytes, to_hash_before[0], sums_before[0], tails_before[0]));
  HLS_PROCESS(fold_blocks(bytes, sums_before[0], tails_before[0], hashed_before[0]));
  HLS_PROCESS(sum_stripes(bytes, to_hash_after[0], sums_after[0], tails_after[0]));
  HLS_PROCESS(fold_blocks(bytes, sums_after[0], tails_after[0], hashed_after[0]));
  HLS_PROCESS(sum_stripes(bytes, to_hash_before[1], sums_before[1], tails_before[1]));
  HLS_PROCESS(fold_blocks(bytes, sums_before[1], tails_before[1], hashed_before[1]));
  HLS_PROCESS(sum_stripes(bytes, to_hash_after[1], sums_after[1], tails_after[1]));
  HLS_PROCESS(fold_blocks(bytes, sums_after[1], tails_after[1], hashed_after[1]));
  if constexpr (kStates == 3) {
    HLS_PROCESS(sum_stripes(bytes, to_hash_before[2], sums_before[2], tails_before[2]));
    HLS_PROCESS(fold_blocks(bytes, sums_before[2], tails_before[2], hashed_before[2]));
    HLS_PROCESS(sum_stripes(bytes, to_hash_after[2], sums_after[2], tails_after[2]));
    HLS_PROCESS(fold_blocks(bytes, sums_after[2], tails_after[2], hashed_after[2]));
  }
  HLS_PROCESS(finish<kStates>(faults, hashed_before, hashed_after, bytes, result));
  HLS_END();
}

// Nothing is read or written, but the result, where the arguments cannot be.
template <class Rule>
void update_subgroup(const Rule& rule, const UpdateSize& size, const Word* gradient_in,
                     const Word* counts, const Word* indices_in, const Word* state0_in,
                     Word* state0_out, const Word* state1_in, Word* state1_out,
                     const Word* state2_in, Word* state2_out, Word* parameters, Word* result) {
  const bool is_known = size.element_count >= 1 && size.element_count <= kMaxElements &&
                        size.gradient_format <= kGradientSparse &&
                        size.parameter_format <= kParametersFp16;
  if (is_known) {
    update_region(rule, size, gradient_in, counts, indices_in, state0_in, state0_out, state1_in,
                  state1_out, state2_in, state2_out, parameters, result);
  } else {
    result[0] = status_word({kBadArguments, 0});
  }
}

}  // namespace sluice::hls_kernels
