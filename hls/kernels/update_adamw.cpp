// The compute unit of AdamW.
//
// Thread contract: that of kernels.h.

#include "hls/kernels/update.h"

namespace sluice::hls_kernels {

extern "C" void update_adamw(const Word* gradient, const Word* counts, const Word* indices,
                             const Word* master_weights_in, Word* master_weights_out,
                             const Word* exp_avg_in, Word* exp_avg_out, const Word* exp_avg_sq_in,
                             Word* exp_avg_sq_out, Word* parameters, Word* result,
                             std::uint64_t element_count, std::uint64_t gradient_words,
                             std::uint32_t gradient_format, std::uint32_t parameter_format,
                             float grad_scale, float beta1, float one_minus_beta1, float beta2,
                             float one_minus_beta2, float decay, float minus_step_size,
                             float inverse_sqrt_bias2, float eps) {
#pragma HLS interface m_axi port = gradient bundle = gradient offset = slave
#pragma HLS interface m_axi port = counts bundle = counts offset = slave
#pragma HLS interface m_axi port = indices bundle = indices offset = slave
#pragma HLS interface m_axi port = master_weights_in bundle = state0 offset = slave
#pragma HLS interface m_axi port = master_weights_out bundle = state0 offset = slave
#pragma HLS interface m_axi port = exp_avg_in bundle = state1 offset = slave
#pragma HLS interface m_axi port = exp_avg_out bundle = state1 offset = slave
#pragma HLS interface m_axi port = exp_avg_sq_in bundle = state2 offset = slave
#pragma HLS interface m_axi port = exp_avg_sq_out bundle = state2 offset = slave
#pragma HLS interface m_axi port = parameters bundle = parameters offset = slave
#pragma HLS interface m_axi port = result bundle = result offset = slave
#pragma HLS interface s_axilite port = element_count
#pragma HLS interface s_axilite port = gradient_words
#pragma HLS interface s_axilite port = gradient_format
#pragma HLS interface s_axilite port = parameter_format
#pragma HLS interface s_axilite port = grad_scale
#pragma HLS interface s_axilite port = beta1
#pragma HLS interface s_axilite port = one_minus_beta1
#pragma HLS interface s_axilite port = beta2
#pragma HLS interface s_axilite port = one_minus_beta2
#pragma HLS interface s_axilite port = decay
#pragma HLS interface s_axilite port = minus_step_size
#pragma HLS interface s_axilite port = inverse_sqrt_bias2
#pragma HLS interface s_axilite port = eps
#pragma HLS interface s_axilite port = return
  const AdamW<KernelArithmetic> rule(grad_scale, beta1, one_minus_beta1, beta2, one_minus_beta2,
                                     decay, minus_step_size, inverse_sqrt_bias2, eps);
  const UpdateSize size = {element_count, gradient_words, gradient_format, parameter_format};
  update_subgroup(rule, size, gradient, counts, indices, master_weights_in, master_weights_out,
                  exp_avg_in, exp_avg_out, exp_avg_sq_in, exp_avg_sq_out, parameters, result);
}

}  // namespace sluice::hls_kernels
