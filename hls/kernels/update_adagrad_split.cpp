// The compute unit of AdaGrad on split state.
//
// Thread contract: that of kernels.h.

#include "hls/kernels/split_update.h"

namespace sluice::hls_kernels {

extern "C" void update_adagrad_split(
    const Word* gradient, const Word* counts, const Word* indices, const Word* parameters_in,
    Word* parameters_out, const Word* remainder_in, Word* remainder_out, const Word* sum_sq_in,
    Word* sum_sq_out, Word* result, std::uint64_t element_count, std::uint64_t gradient_words,
    std::uint32_t gradient_format, std::uint32_t state_format, std::uint64_t first_flat_index,
    std::uint32_t rounding_key, float grad_scale, float weight_decay, float minus_lr, float eps) {
#pragma HLS interface m_axi port = gradient bundle = gradient offset = slave
#pragma HLS interface m_axi port = counts bundle = counts offset = slave
#pragma HLS interface m_axi port = indices bundle = indices offset = slave
#pragma HLS interface m_axi port = parameters_in bundle = state0 offset = slave
#pragma HLS interface m_axi port = parameters_out bundle = state0 offset = slave
#pragma HLS interface m_axi port = remainder_in bundle = state1 offset = slave
#pragma HLS interface m_axi port = remainder_out bundle = state1 offset = slave
#pragma HLS interface m_axi port = sum_sq_in bundle = state2 offset = slave
#pragma HLS interface m_axi port = sum_sq_out bundle = state2 offset = slave
#pragma HLS interface m_axi port = result bundle = result offset = slave
#pragma HLS interface s_axilite port = element_count
#pragma HLS interface s_axilite port = gradient_words
#pragma HLS interface s_axilite port = gradient_format
#pragma HLS interface s_axilite port = state_format
#pragma HLS interface s_axilite port = first_flat_index
#pragma HLS interface s_axilite port = rounding_key
#pragma HLS interface s_axilite port = grad_scale
#pragma HLS interface s_axilite port = weight_decay
#pragma HLS interface s_axilite port = minus_lr
#pragma HLS interface s_axilite port = eps
#pragma HLS interface s_axilite port = return
  const AdaGrad<KernelArithmetic> rule(grad_scale, weight_decay, minus_lr, eps);
  const SplitSize size = {element_count, gradient_words, gradient_format, state_format};
  const SplitRounding rounding = {first_flat_index, rounding_key};
  split_subgroup(rule, size, rounding, gradient, counts, indices, parameters_in, parameters_out,
                 remainder_in, remainder_out, sum_sq_in, sum_sq_out, nullptr, nullptr, result);
}

}  // namespace sluice::hls_kernels
