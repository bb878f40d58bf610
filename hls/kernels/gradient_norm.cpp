// The compute unit of the overflow check and the global norm.
//
// Thread contract: that of kernels.h.

#include "hls/kernels/gradient_norm.h"

#include "hls/kernels/kernels.h"

namespace sluice::hls_kernels {

extern "C" void gradient_norm(const Word* gradient, Word* result, std::uint64_t element_count,
                              std::uint32_t gradient_format) {
#pragma HLS interface m_axi port = gradient bundle = gradient offset = slave
#pragma HLS interface m_axi port = result bundle = result offset = slave
#pragma HLS interface s_axilite port = element_count
#pragma HLS interface s_axilite port = gradient_format
#pragma HLS interface s_axilite port = return
  norm_of<KernelSum>(gradient, result, element_count, gradient_format);
}

}  // namespace sluice::hls_kernels
