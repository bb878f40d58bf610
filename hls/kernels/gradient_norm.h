#pragma once
// The sum of squares of a gradient, bit-equal to core/optimizer/gradient_stats.h: sixteen sums to a
// block of 16,384 elements, one a lane. A sum takes several cycles to be added to, and a row of 16
// elements comes each cycle; so sixteen blocks are summed at a time, a row of each in turn.
//
//   load_bursts       64 rows of each of 16 blocks: one chunk, in runs of up to 4 KiB
//   unpack_rows       -> fp32; zero for what is absent or not finite, which it tells
//   interleave_rows   -> a row of each block in turn; one of two chunks is filled, one is sent
//   sum_rows          -> a block's 16 sums, when it ends
//   add_blocks        -> the sums pairwise, then block after block
//
// Sum is one of hls/kernels/square_sum.h.
//
// Thread contract: calls on disjoint results may run at once.

#include <cstdint>

#include "hls/kernels/gradient.h"
#include "hls/kernels/square_sum.h"

namespace sluice::hls_kernels {

inline constexpr std::uint32_t kNormBlockElements = 16 * 1024;
inline constexpr std::uint32_t kNormBlockRows = kNormBlockElements / kLanes;
// The least distance, in cycles, between two additions to a sum. An adder of this width is
// estimated at 6 to 8 stages at 300 MHz.
inline constexpr std::uint32_t kGroupBlocks = 16;
// Rows of a block that are read in one run. A longer one waits less often for the memory; two
// chunks of these are 32 block RAMs (estimated: 72 bits x 512 each).
inline constexpr std::uint32_t kBurstRows = 64;
inline constexpr std::uint32_t kChunkRows = kGroupBlocks * kBurstRows;
inline constexpr std::uint32_t kGroupChunks = kNormBlockRows / kBurstRows;
static_assert(kNormBlockRows % kBurstRows == 0, "a block is whole bursts");
static_assert(kBurstRows % 2 == 0, "a burst of halves begins with a word");

// How a gradient is cut. Only its last group may have fewer chunks, as many as its first block
// needs.
struct NormShape {
  std::uint64_t element_count;
  GradientFormat format;

  std::uint32_t rows() const {
    return static_cast<std::uint32_t>((element_count + kLanes - 1) / kLanes);
  }
  std::uint32_t groups() const {
    constexpr std::uint32_t kGroupRows = kGroupBlocks * kNormBlockRows;
    return (rows() + kGroupRows - 1) / kGroupRows;
  }
  std::uint32_t chunks() const {
    if (element_count == 0) return 0;
    const std::uint32_t whole = groups() - 1;
    const std::uint32_t rest = rows() - whole * kGroupBlocks * kNormBlockRows;
    const std::uint32_t last = (rest + kBurstRows - 1) / kBurstRows;
    return whole * kGroupChunks + (last < kGroupChunks ? last : kGroupChunks);
  }
  // The first row of a block's burst in a chunk, and how many of the burst's rows there are.
  std::uint32_t first_row(std::uint32_t chunk, std::uint32_t block) const {
    const std::uint32_t block_of_all = chunk / kGroupChunks * kGroupBlocks + block;
    return block_of_all * kNormBlockRows + chunk % kGroupChunks * kBurstRows;
  }
  std::uint32_t burst_rows(std::uint32_t chunk, std::uint32_t block) const {
    const std::uint32_t first = first_row(chunk, block);
    const std::uint32_t left = first < rows() ? rows() - first : 0;
    return left < kBurstRows ? left : kBurstRows;
  }
  std::uint32_t rows_per_word() const { return format == kGradientFp32 ? 1 : 2; }
};

using SumRow = hls::vector<std::uint64_t, kLanes>;
using SumRowStream = hls::stream<SumRow, kGroupBlocks>;

// Which of the two kinds of elements that are not finite there were.
struct NotFinite {
  bool has_infinity = false;
  bool has_nan = false;
};
using NotFiniteStream = hls::stream<NotFinite, 2>;

inline void load_bursts(const Word* gradient, NormShape shape, WordStream& words) {
load_chunks:
  for (std::uint32_t chunk = 0; chunk < shape.chunks(); ++chunk) {
#pragma HLS loop_tripcount min = 0 max = 131072 avg = 1024
  load_blocks:
    for (std::uint32_t block = 0; block < kGroupBlocks; ++block) {
      const int halving = shape.rows_per_word() == 2 ? 1 : 0;
      const std::uint32_t first = shape.first_row(chunk, block) >> halving;
      const std::uint32_t count = (shape.burst_rows(chunk, block) + halving) >> halving;
    load_burst:
      for (std::uint32_t i = 0; i < count; ++i) {
#pragma HLS loop_tripcount min = 0 max = 64 avg = 64
#pragma HLS pipeline II = 1
        words.write(gradient[first + i]);
      }
    }
  }
}

// The row without what is past the end or not finite.
inline Word finite_row(const Word& row, std::uint64_t elements, NotFinite& seen) {
#pragma HLS inline
  Word finite;
check_lanes:
  for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
    const std::uint32_t bits = row[lane];
    const bool is_there = static_cast<std::uint64_t>(lane) < elements;
    seen.has_infinity |= is_there && is_infinite(bits);
    seen.has_nan |= is_there && is_nan(bits);
    finite[lane] = is_there && !is_infinite(bits) && !is_nan(bits) ? bits : 0u;
  }
  return finite;
}

inline void unpack_rows(NormShape shape, WordStream& words, WordStream& rows,
                        NotFiniteStream& not_finite) {
  const std::uint32_t count = shape.chunks() * kChunkRows;
  NotFinite seen;
  Word word = Word(0u);
unpack_row:
  for (std::uint32_t i = 0; i < count; ++i) {
#pragma HLS loop_tripcount min = 0 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    const std::uint32_t row = i % kBurstRows;
    const std::uint32_t place =
        shape.first_row(i / kChunkRows, i / kBurstRows % kGroupBlocks) + row;
    if (place < shape.rows()) {
      const bool is_upper = shape.rows_per_word() == 2 && row % 2 == 1;
      if (!is_upper) word = words.read();
      const std::uint64_t left = shape.element_count - std::uint64_t{place} * kLanes;
      rows.write(finite_row(widened_words(shape.format, word, is_upper), left, seen));
    } else {
      rows.write(Word(0u));
    }
  }
  not_finite.write(seen);
}

inline void interleave_rows(NormShape shape, WordStream& rows, WordStream& interleaved) {
  Word chunks[2][kChunkRows];
#pragma HLS array_partition variable = chunks dim = 1 complete
#pragma HLS bind_storage variable = chunks type = ram_2p impl = bram
  const std::uint32_t count = shape.chunks() * kChunkRows;
  // One chunk more, in which the last one is sent.
  const std::uint32_t steps = count == 0 ? 0 : count + kChunkRows;
interleave_row:
  for (std::uint32_t i = 0; i < steps; ++i) {
#pragma HLS loop_tripcount min = 0 max = 134218752 avg = 1049600
#pragma HLS pipeline II = 1
    // Rows that are filled in this chunk are sent in the next one.
#pragma HLS dependence variable = chunks type = inter dependent = false
    const std::uint32_t filled = i / kChunkRows % 2;
    const std::uint32_t step = i % kChunkRows;
    const std::uint32_t sent = step % kGroupBlocks * kBurstRows + step / kGroupBlocks;
    if (i >= kChunkRows) interleaved.write(chunks[1 - filled][sent]);
    if (i < count) chunks[filled][step] = rows.read();
  }
}

template <class Sum>
void sum_rows(NormShape shape, WordStream& interleaved, SumRowStream& sums) {
  typename Sum::Value sum[kGroupBlocks][kLanes];
#pragma HLS array_partition variable = sum dim = 2 complete
  const std::uint32_t chunks = shape.chunks();
sum_row:
  for (std::uint32_t i = 0; i < chunks * kChunkRows; ++i) {
#pragma HLS loop_tripcount min = 0 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    // A block's turn comes again after those of the others.
#pragma HLS dependence variable = sum type = inter direction = RAW distance = 16 dependent = true
    const std::uint32_t block = i % kGroupBlocks;
    const std::uint32_t chunk = i / kChunkRows;
    const std::uint32_t step = i % kChunkRows;
    const bool is_first = chunk % kGroupChunks == 0 && step < kGroupBlocks;
    const bool is_last = (chunk % kGroupChunks == kGroupChunks - 1 || chunk == chunks - 1) &&
                         step >= kChunkRows - kGroupBlocks;
    const Word row = interleaved.read();
    SumRow after;
  sum_lanes:
    for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
      const typename Sum::Value before = is_first ? Sum::zero() : sum[block][lane];
      const typename Sum::Value added = Sum::add(before, Sum::square(row[lane]));
      sum[block][lane] = added;
      after[lane] = Sum::to_bits(added);
    }
    if (is_last) sums.write(after);
  }
}
static_assert(kGroupBlocks == 16, "the distance that sum_rows states");

// Sixteen to one: 16 -> 8 -> 4 -> 2 -> 1.
template <class Sum>
typename Sum::Value pairwise_sum(const SumRow& row) {
#pragma HLS inline
  typename Sum::Value sums[kLanes];
take_sums:
  for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
    sums[lane] = Sum::from_bits(row[lane]);
  }
halve_sums:
  for (int level = 1; level <= 4; ++level) {
#pragma HLS unroll
  add_pairs:
    for (int lane = 0; lane < kLanes / 2; ++lane) {
#pragma HLS unroll
      const int width = kLanes >> level;
      if (lane < width) sums[lane] = Sum::add(sums[lane], sums[lane + width]);
    }
  }
  return sums[0];
}

// A block that is absent adds +0, which changes no sum.
template <class Sum>
void add_blocks(NormShape shape, SumRowStream& sums, NotFiniteStream& not_finite, Word* result) {
  typename Sum::Value total = Sum::zero();
add_block_sums:
  for (std::uint32_t i = 0; i < shape.groups() * kGroupBlocks; ++i) {
#pragma HLS loop_tripcount min = 0 max = 131072 avg = 1024
    // A block ends every 1,024 cycles: so few adders do.
#pragma HLS pipeline II = 16
    total = Sum::add(total, pairwise_sum<Sum>(sums.read()));
  }
  constexpr std::uint64_t kInfinity64 = std::uint64_t{0x7ff} << 52;
  constexpr std::uint64_t kNan64 = std::uint64_t{0xfff} << 51;
  const NotFinite seen = not_finite.read();
  std::uint64_t bits = Sum::to_bits(total);
  if (seen.has_infinity) bits = kInfinity64;
  if (seen.has_nan) bits = kNan64;
  Word word = Word(0u);
  word[0] = seen.has_infinity || seen.has_nan ? 0u : 1u;
  set_lane64(word, 1, bits);
  result[0] = word;
}

template <class Sum>
void gradient_norm_region(const Word* gradient, NormShape shape, Word* result) {
#pragma HLS dataflow
  HLS_BEGIN();
  WordStream words("words"), rows("rows"), interleaved("interleaved");
  SumRowStream sums("sums");
  NotFiniteStream not_finite("not_finite");
  HLS_PROCESS(load_bursts(gradient, shape, words));
  HLS_PROCESS(unpack_rows(shape, words, rows, not_finite));
  HLS_PROCESS(interleave_rows(shape, rows, interleaved));
  HLS_PROCESS(sum_rows<Sum>(shape, interleaved, sums));
  HLS_PROCESS(add_blocks<Sum>(shape, sums, not_finite, result));
  HLS_END();
}

// Arguments that cannot be: nothing is read, and the result is not finite.
template <class Sum>
void norm_of(const Word* gradient, Word* result, std::uint64_t element_count,
             std::uint32_t gradient_format) {
  const bool is_known = element_count <= kMaxElements && gradient_format < kGradientSparse;
  if (is_known) {
    const auto format = static_cast<GradientFormat>(gradient_format);
    gradient_norm_region<Sum>(gradient, {element_count, format}, result);
  } else {
    result[0] = Word(0u);
  }
}

}  // namespace sluice::hls_kernels
