#pragma once
// The processes that bring a gradient, dense or sparse, as words of 16 fp32 in the order of the
// elements. A sparse one is scattered into a tile on the chip: no dense gradient is in the device's
// memory, and each of its bytes is read once.
//
//   plan_gradient   header and counts       -> plans for all, a count for each tile
//   load_values     dense elements, or kept values, as they lie
//   load_indices    indices of the kept, as they lie
//   unpack_values   -> words of fp32 (dense), one kept value a cycle (sparse)
//   unpack_indices  -> one index a cycle
//   assemble        -> words; two tiles of 16 banks: while one is filled, a kept element a cycle,
//   the
//                   other is sent, a row a cycle, and cleared behind
//
// Thread contract: processes of a dataflow region.

#include <cstdint>

#include "hls/kernels/float16.h"
#include "hls/kernels/sparse_plan.h"

namespace sluice::hls_kernels {

inline constexpr int kPlanReaders = 5;
using PlanStream = hls::stream<GradientPlan, 2>;
using FaultStream = hls::stream<Fault, 2>;
using ValueStream = hls::stream<std::uint32_t, 64>;
using IndexStream = hls::stream<std::uint32_t, 64>;
using WordStream = hls::stream<Word, 64>;

// `counts` is the gradient from its first byte. A count that cannot be is a fault and counts as 0,
// so that what the tiles take is never more than the plan's kept_count.
inline void plan_gradient(const Word* counts, std::uint64_t element_count,
                          std::uint64_t gradient_words, std::uint32_t gradient_format,
                          PlanStream (&plans)[kPlanReaders],
                          hls::stream<std::uint32_t, 64>& tile_counts, FaultStream& faults) {
  GradientPlan plan;
  if (gradient_format != kGradientSparse) {
    plan = plan_dense(element_count, gradient_words, gradient_format);
  } else if (gradient_words == 0) {
    plan = refused(plan_without(element_count), kCutGradient);
  } else {
    plan = plan_sparse(counts[0], element_count, gradient_words);
  }
send_plans:
  for (int i = 0; i < kPlanReaders; ++i) {
#pragma HLS unroll
    plans[i].write(plan);
  }
  Fault fault = {plan.status, 0};
  if (plan.is_sparse && plan.status == kUpdated) {
    const std::uint32_t count_words = (plan.tile_count + kLanes - 1) / kLanes;
    std::uint64_t left = plan.kept_count;
    Word word = Word(0u);
  send_counts:
    for (std::uint32_t i = 0; i < count_words * kLanes; ++i) {
#pragma HLS loop_tripcount min = 16 max = 131072 avg = 1024
#pragma HLS pipeline II = 1
      if (i % kLanes == 0) word = counts[1 + i / kLanes];
      std::uint32_t count = word[i % kLanes];
      if (i < plan.tile_count) {
        if (count > plan.elements_in(i) || count > left) {
          if (fault.status == kUpdated) fault = {kTileOverfull, i};
          count = 0;
        }
        left -= count;
        tile_counts.write(count);
      } else if (count != 0 && fault.status == kUpdated) {
        fault = {kNotZero, i};
      }
    }
    if (left != 0 && fault.status == kUpdated) fault = {kWrongCounts, plan.tile_count - 1};
  }
  faults.write(fault);
}

inline void load_values(const Word* gradient, PlanStream& plans, WordStream& words) {
  const GradientPlan plan = plans.read();
  const std::uint64_t first = plan.is_sparse ? plan.values_word : 0;
  const std::uint64_t count = plan.value_words();
load_value_words:
  for (std::uint64_t i = 0; i < count; ++i) {
#pragma HLS loop_tripcount min = 0 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    words.write(gradient[first + i]);
  }
}

inline void load_indices(const Word* indices, PlanStream& plans, WordStream& words) {
  const GradientPlan plan = plans.read();
  const std::uint64_t count = plan.is_sparse && plan.status == kUpdated ? plan.index_words() : 0;
load_index_words:
  for (std::uint64_t i = 0; i < count; ++i) {
#pragma HLS loop_tripcount min = 0 max = 67108864 avg = 5243
#pragma HLS pipeline II = 1
    words.write(indices[plan.indices_word + i]);
  }
}

inline std::uint32_t half_of(const Word& word, std::uint32_t element) {
#pragma HLS inline
  return word[element / 2] >> (16 * (element % 2)) & 0xffffu;
}

inline std::uint32_t widened(GradientFormat format, std::uint32_t half) {
#pragma HLS inline
  return format == kGradientBf16 ? fp32_from_bf16(half) : fp32_from_fp16(half);
}

// A word of fp32 from the lower or the upper half of a word.
inline Word widened_words(GradientFormat format, const Word& word, bool is_upper) {
#pragma HLS inline
  if (format == kGradientFp32) return word;
  Word result;
widen_lanes:
  for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
    result[lane] = widened(format, half_of(word, lane + (is_upper ? kLanes : 0)));
  }
  return result;
}

inline void unpack_dense(const GradientPlan& plan, WordStream& words, WordStream& dense) {
  const std::uint64_t count = (plan.value_count() + kLanes - 1) / kLanes;
  const bool is_packed = plan.format != kGradientFp32;
  Word word = Word(0u);
unpack_words:
  for (std::uint64_t i = 0; i < count; ++i) {
#pragma HLS loop_tripcount min = 1 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    if (!is_packed || i % 2 == 0) word = words.read();
    dense.write(widened_words(plan.format, word, is_packed && i % 2 == 1));
  }
}

// One kept value a cycle. What pads the last word must be zero.
inline Fault unpack_kept(const GradientPlan& plan, WordStream& words, ValueStream& values) {
  const std::uint32_t per_word = plan.values_per_word();
  const std::uint64_t count = plan.value_words() * per_word;
  std::uint32_t place = 0;  // in its word
  Fault fault;
  Word word = Word(0u);
unpack_value:
  for (std::uint64_t i = 0; i < count; ++i) {
#pragma HLS loop_tripcount min = 0 max = 2147483648 avg = 167772
#pragma HLS pipeline II = 1
    if (place == 0) word = words.read();
    const bool is_fp32 = plan.format == kGradientFp32;
    const std::uint32_t bits = is_fp32 ? word[place % kLanes] : half_of(word, place);
    if (i < plan.kept_count) {
      values.write(is_fp32 ? bits : widened(plan.format, bits));
    } else if (bits != 0) {
      fault = {kNotZero, plan.tile_count - 1};
    }
    place = place + 1 == per_word ? 0 : place + 1;
  }
  return fault;
}

inline void unpack_values(PlanStream& plans, WordStream& words, WordStream& dense,
                          ValueStream& values, FaultStream& faults) {
  const GradientPlan plan = plans.read();
  Fault fault;
  if (plan.is_sparse) {
    fault = unpack_kept(plan, words, values);
  } else {
    unpack_dense(plan, words, dense);
  }
  faults.write(fault);
}

inline void unpack_indices(PlanStream& plans, WordStream& words, IndexStream& indices,
                           FaultStream& faults) {
  const GradientPlan plan = plans.read();
  const bool is_read = plan.is_sparse && plan.status == kUpdated;
  const std::uint64_t count = is_read ? plan.index_words() * 2 * kLanes : 0;
  Fault fault;
  Word word = Word(0u);
unpack_index:
  for (std::uint64_t i = 0; i < count; ++i) {
#pragma HLS loop_tripcount min = 0 max = 2147483648 avg = 167772
#pragma HLS pipeline II = 1
    const auto place = static_cast<std::uint32_t>(i % (2 * kLanes));
    if (place == 0) word = words.read();
    const std::uint32_t index = half_of(word, place);
    if (i < plan.kept_count) {
      indices.write(index);
    } else if (index != 0) {
      fault = {kNotZero, plan.tile_count - 1};
    }
  }
  faults.write(fault);
}

// Two tiles and what fills them.
class Scatter {
 public:
  Scatter() {
#pragma HLS array_partition variable = tiles_ dim = 1 complete
#pragma HLS array_partition variable = tiles_ dim = 3 complete
#pragma HLS bind_storage variable = tiles_ type = ram_2p impl = bram
  clear_rows:
    for (int row = 0; row < kTileRows; ++row) {
#pragma HLS pipeline II = 1
    clear_lanes:
      for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
        tiles_[0][row][lane] = 0;
        tiles_[1][row][lane] = 0;
      }
    }
  }

  // Fills tile `tile` with `kept` elements and sends the `rows` first rows of the one before it.
  // Both are of different buffers, and a row is cleared behind its reading, so no step waits for
  // another.
  void step_tile(std::uint32_t tile, std::uint32_t kept, std::uint32_t elements, std::uint32_t rows,
                 IndexStream& indices, ValueStream& values, WordStream& dense) {
    const std::uint32_t filled = tile % 2;
    const std::uint32_t steps = kept > rows ? kept : rows;
    std::uint32_t next_allowed = 0;  // indices ascend strictly
  step_rows:
    for (std::uint32_t i = 0; i < steps; ++i) {
#pragma HLS loop_tripcount min = 0 max = 16384 avg = 1024
#pragma HLS pipeline II = 1
#pragma HLS dependence variable = tiles_ type = inter dependent = false
      if (i < rows) dense.write(taken_row(1 - filled, i));
      if (i < kept) {
        const std::uint32_t index = indices.read();
        const std::uint32_t value = values.read();
        if (index >= next_allowed && index < elements) {
          tiles_[filled][index / kLanes][index % kLanes] = value;
          next_allowed = index + 1;
        } else if (fault_.status == kUpdated) {
          fault_ = {kBadIndex, tile};
        }
      }
    }
  }
  const Fault& fault() const { return fault_; }

 private:
  Word taken_row(std::uint32_t buffer, std::uint32_t row) {
    Word word;
  take_lanes:
    for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
      word[lane] = tiles_[buffer][row][lane];
      tiles_[buffer][row][lane] = 0;
    }
    return word;
  }

  std::uint32_t tiles_[2][kTileRows][kLanes];
  Fault fault_;
};

// Elements that no tile took, after a count that could not be.
inline void drain(std::uint64_t count, IndexStream& indices, ValueStream& values) {
drain_kept:
  for (std::uint64_t i = 0; i < count; ++i) {
#pragma HLS loop_tripcount min = 0 max = 2147483648 avg = 0
#pragma HLS pipeline II = 1
    indices.read();
    values.read();
  }
}

inline Fault scatter_tiles(const GradientPlan& plan, hls::stream<std::uint32_t, 64>& tile_counts,
                           IndexStream& indices, ValueStream& values, WordStream& dense) {
  Scatter scatter;
  std::uint64_t left = plan.kept_count;
  std::uint32_t rows = 0;  // of the tile before
fill_tiles:
  for (std::uint32_t tile = 0; tile <= plan.tile_count; ++tile) {
#pragma HLS loop_tripcount min = 2 max = 131073 avg = 1025
    const bool is_tile = tile < plan.tile_count;
    const bool has_kept = is_tile && plan.status == kUpdated;
    const std::uint32_t kept = has_kept ? tile_counts.read() : 0;
    const std::uint32_t elements = is_tile ? plan.elements_in(tile) : 0;
    scatter.step_tile(tile, kept, elements, rows, indices, values, dense);
    left -= kept;
    rows = (elements + kLanes - 1) / kLanes;
  }
  drain(left, indices, values);
  return scatter.fault();
}

inline void send_zeros(std::uint64_t words, WordStream& gradient) {
send_zero_words:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS loop_tripcount min = 0 max = 134217728 avg = 0
#pragma HLS pipeline II = 1
    gradient.write(Word(0u));
  }
}

inline void pass_words(std::uint64_t words, WordStream& dense, WordStream& gradient) {
pass_dense_words:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS loop_tripcount min = 0 max = 134217728 avg = 1048576
#pragma HLS pipeline II = 1
    gradient.write(dense.read());
  }
}

// The gradient as the update takes it, ceil(element_count / 16) words whatever was wrong with it.
inline void assemble(PlanStream& plans, WordStream& dense,
                     hls::stream<std::uint32_t, 64>& tile_counts, IndexStream& indices,
                     ValueStream& values, WordStream& gradient, FaultStream& faults) {
  const GradientPlan plan = plans.read();
  const std::uint64_t words = (plan.element_count + kLanes - 1) / kLanes;
  Fault fault;
  if (plan.is_sparse) {
    fault = scatter_tiles(plan, tile_counts, indices, values, gradient);
  } else if (plan.status != kUpdated) {
    send_zeros(words, gradient);
  } else {
    pass_words(words, dense, gradient);
  }
  faults.write(fault);
}

}  // namespace sluice::hls_kernels
