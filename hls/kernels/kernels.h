#pragma once
// The kernels as the host sees them: the top functions, one compute unit each, and what their
// scalars and results mean. docs/hls.md has the pipeline. The host's own constants have the same
// values by tests/hls/kernels/constants_test.cpp, not by inclusion.
//
// A pointer is a buffer in device memory, aligned to 64 bytes and of whole words; it may be the
// same buffer for an `_in` and its `_out` (an update in place), and is the same for `gradient`,
// `counts` and `indices`. The last word of an array may be written past its last element, with what
// was there (state) or zero (parameters).
//
// Thread contract: under simulation any number of calls at once on disjoint buffers.

#include "hls/kernels/word.h"

namespace sluice::hls_kernels {

inline constexpr std::uint32_t kTileElements = 16 * 1024;
inline constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 31;

// `gradient_format`. A sparse gradient is docs/sparse_gradient_format.md from its first byte; its
// header says of which kind its values are.
enum GradientFormat : std::uint32_t {
  kGradientFp32 = 0,
  kGradientBf16 = 1,
  kGradientFp16 = 2,
  kGradientSparse = 3,
};

// `parameter_format`: what is written to `parameters`, if anything.
enum ParameterFormat : std::uint32_t {
  kParametersNone = 0,
  kParametersFp32 = 1,
  kParametersBf16 = 2,
  kParametersFp16 = 3,
};

// `state_format` of the kernels of split state (base/state_format.h): the exact format, or the
// compact one with a remainder of 16 or of 8 bits.
enum SplitFormat : std::uint32_t {
  kStateExact = 1,
  kStateCompact16 = 2,
  kStateCompact8 = 3,
};

// Lane 0 of word 0 of an update's result: why the outcome is worthless. The outputs are then
// unspecified, but nothing outside of them was written.
enum UpdateStatus : std::uint32_t {
  kUpdated = 0,
  kBadArguments = 1,     // a format or an element count that no kernel knows
  kForeignGradient = 2,  // magic, version, kind or tile size of the sparse header
  kWrongCounts = 3,      // another element, kept or tile count than the subgroup's
  kCutGradient = 4,      // the header announces more words than `gradient_words`
  kTileOverfull = 5,     // a tile's count is above its elements, or above what is left
  kBadIndex = 6,         // not strictly ascending in its tile, or outside of it
  kNotZero = 7,          // a byte that pads, or a reserved one, is not zero
};

// Word 0 of an update's result: lane 0 the status, lane 1 the tile where it was seen. Word 1: the
// XXH3-64 of each state array as it was read, in 64-bit lanes in the order of the arguments. Word
// 2: of each as it was written.
inline constexpr int kResultWords = 3;

extern "C" {

// core/optimizer/update_rule.h has the formulas. `element_count` is 1 to kMaxElements;
// `gradient_words` is the size of the gradient's buffer and bounds what is read of it.
void update_adamw(const Word* gradient, const Word* counts, const Word* indices,
                  const Word* master_weights_in, Word* master_weights_out, const Word* exp_avg_in,
                  Word* exp_avg_out, const Word* exp_avg_sq_in, Word* exp_avg_sq_out,
                  Word* parameters, Word* result, std::uint64_t element_count,
                  std::uint64_t gradient_words, std::uint32_t gradient_format,
                  std::uint32_t parameter_format, float grad_scale, float beta1,
                  float one_minus_beta1, float beta2, float one_minus_beta2, float decay,
                  float minus_step_size, float inverse_sqrt_bias2, float eps);

void update_sgd(const Word* gradient, const Word* counts, const Word* indices,
                const Word* master_weights_in, Word* master_weights_out,
                const Word* momentum_buffer_in, Word* momentum_buffer_out, Word* parameters,
                Word* result, std::uint64_t element_count, std::uint64_t gradient_words,
                std::uint32_t gradient_format, std::uint32_t parameter_format, float grad_scale,
                float weight_decay, float momentum, float minus_lr);

void update_adagrad(const Word* gradient, const Word* counts, const Word* indices,
                    const Word* master_weights_in, Word* master_weights_out, const Word* sum_sq_in,
                    Word* sum_sq_out, Word* parameters, Word* result, std::uint64_t element_count,
                    std::uint64_t gradient_words, std::uint32_t gradient_format,
                    std::uint32_t parameter_format, float grad_scale, float weight_decay,
                    float minus_lr, float eps);

// The same on split state (base/state_format.h; core/optimizer/split_update.h has the definition):
// `parameters`, the bf16 copy, and `remainder` are the master weights. Element i of the buffers has
// the flat index `first_flat_index` + i, a multiple of 64 for the first; `rounding_key` is
// CodeRounding::key(). The last word of an array may be written past its last byte, with what was
// there or zero.
void update_adamw_split(const Word* gradient, const Word* counts, const Word* indices,
                        const Word* parameters_in, Word* parameters_out, const Word* remainder_in,
                        Word* remainder_out, const Word* exp_avg_in, Word* exp_avg_out,
                        const Word* exp_avg_sq_in, Word* exp_avg_sq_out, Word* result,
                        std::uint64_t element_count, std::uint64_t gradient_words,
                        std::uint32_t gradient_format, std::uint32_t state_format,
                        std::uint64_t first_flat_index, std::uint32_t rounding_key,
                        float grad_scale, float beta1, float one_minus_beta1, float beta2,
                        float one_minus_beta2, float decay, float minus_step_size,
                        float inverse_sqrt_bias2, float eps);

void update_sgd_split(const Word* gradient, const Word* counts, const Word* indices,
                      const Word* parameters_in, Word* parameters_out, const Word* remainder_in,
                      Word* remainder_out, const Word* momentum_buffer_in,
                      Word* momentum_buffer_out, Word* result, std::uint64_t element_count,
                      std::uint64_t gradient_words, std::uint32_t gradient_format,
                      std::uint32_t state_format, std::uint64_t first_flat_index,
                      std::uint32_t rounding_key, float grad_scale, float weight_decay,
                      float momentum, float minus_lr);

void update_adagrad_split(const Word* gradient, const Word* counts, const Word* indices,
                          const Word* parameters_in, Word* parameters_out, const Word* remainder_in,
                          Word* remainder_out, const Word* sum_sq_in, Word* sum_sq_out,
                          Word* result, std::uint64_t element_count, std::uint64_t gradient_words,
                          std::uint32_t gradient_format, std::uint32_t state_format,
                          std::uint64_t first_flat_index, std::uint32_t rounding_key,
                          float grad_scale, float weight_decay, float minus_lr, float eps);

// The sum of squares of `element_count` gradients (core/optimizer/gradient_stats.h: blocks of
// 16,384, sixteen accumulators a block). `gradient_format` is any but sparse. Result, one word:
// lane 0 is 1 if all were finite, 64-bit lane 1 the bits of the sum, a double. With a format or an
// element count that no kernel knows, nothing is read and lane 0 is 0.
void gradient_norm(const Word* gradient, Word* result, std::uint64_t element_count,
                   std::uint32_t gradient_format);

// XXH3-64 of `size_bytes` bytes from byte `first_byte` of the buffer; both are even, and there is
// at least one. Result, one word: 64-bit lane 0 the digest.
void checksum(const Word* bytes, Word* result, std::uint64_t first_byte, std::uint64_t size_bytes);

}  // extern "C"

}  // namespace sluice::hls_kernels
