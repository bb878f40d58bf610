// The compute unit of AdaGrad.
//
// Thread contract: that of kernels.h.

#include "hls/kernels/update.h"

namespace sluice::hls_kernels {

extern "C" void update_adagrad(const Word* gradient, const Word* counts, const Word* indices,
                               const Word* master_weights_in, Word* master_weights_out,
                               const Word* sum_sq_in, Word* sum_sq_out, Word* parameters,
                               Word* result, std::uint64_t element_count,
                               std::uint64_t gradient_words, std::uint32_t gradient_format,
                               std::uint32_t parameter_format, float grad_scale, float weight_decay,
                               float minus_lr, float eps) {
#pragma HLS interface m_axi port = gradient bundle = gradient offset = slave
#pragma HLS interface m_axi port = counts bundle = counts offset = slave
#pragma HLS interface m_axi port = indices bundle = indices offset = slave
#pragma HLS interface m_axi port = master_weights_in bundle = state0 offset = slave
#pragma HLS interface m_axi port = master_weights_out bundle = state0 offset = slave
#pragma HLS interface m_axi port = sum_sq_in bundle = state1 offset = slave
#pragma HLS interface m_axi port = sum_sq_out bundle = state1 offset = slave
#pragma HLS interface m_axi port = parameters bundle = parameters offset = slave
#pragma HLS interface m_axi port = result bundle = result offset = slave
#pragma HLS interface s_axilite port = element_count
#pragma HLS interface s_axilite port = gradient_words
#pragma HLS interface s_axilite port = gradient_format
#pragma HLS interface s_axilite port = parameter_format
#pragma HLS interface s_axilite port = grad_scale
#pragma HLS interface s_axilite port = weight_decay
#pragma HLS interface s_axilite port = minus_lr
#pragma HLS interface s_axilite port = eps
#pragma HLS interface s_axilite port = return
  const AdaGrad<KernelArithmetic> rule(grad_scale, weight_decay, minus_lr, eps);
  const UpdateSize size = {element_count, gradient_words, gradient_format, parameter_format};
  update_subgroup(rule, size, gradient, counts, indices, master_weights_in, master_weights_out,
                  sum_sq_in, sum_sq_out, nullptr, nullptr, parameters, result);
}

}  // namespace sluice::hls_kernels
