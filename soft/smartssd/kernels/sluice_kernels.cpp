// Sluice's kernels as compute units of a software SmartSSD: one of each, as on the card, or several
// of the updates (SLUICE_UPDATE_UNITS).

#include "hls/kernels/kernels.h"
#include "soft/smartssd/compute_unit.h"

#ifndef SLUICE_UPDATE_UNITS
#define SLUICE_UPDATE_UNITS 1
#endif

using namespace sluice::hls_kernels;

namespace {

const SluiceSoftKernel kKernels[] = {
    SLUICE_COMPUTE_UNIT(
        update_adamw, SLUICE_UPDATE_UNITS, gradient, counts, indices, master_weights_in,
        master_weights_out, exp_avg_in, exp_avg_out, exp_avg_sq_in, exp_avg_sq_out, parameters,
        result, element_count, gradient_words, gradient_format, parameter_format, grad_scale, beta1,
        one_minus_beta1, beta2, one_minus_beta2, decay, minus_step_size, inverse_sqrt_bias2, eps),
    SLUICE_COMPUTE_UNIT(update_sgd, SLUICE_UPDATE_UNITS, gradient, counts, indices,
                        master_weights_in, master_weights_out, momentum_buffer_in,
                        momentum_buffer_out, parameters, result, element_count, gradient_words,
                        gradient_format, parameter_format, grad_scale, weight_decay, momentum,
                        minus_lr),
    SLUICE_COMPUTE_UNIT(update_adagrad, SLUICE_UPDATE_UNITS, gradient, counts, indices,
                        master_weights_in, master_weights_out, sum_sq_in, sum_sq_out, parameters,
                        result, element_count, gradient_words, gradient_format, parameter_format,
                        grad_scale, weight_decay, minus_lr, eps),
    SLUICE_COMPUTE_UNIT(update_adamw_split, SLUICE_UPDATE_UNITS, gradient, counts, indices,
                        parameters_in, parameters_out, remainder_in, remainder_out, exp_avg_in,
                        exp_avg_out, exp_avg_sq_in, exp_avg_sq_out, result, element_count,
                        gradient_words, gradient_format, state_format, first_flat_index,
                        rounding_key, grad_scale, beta1, one_minus_beta1, beta2, one_minus_beta2,
                        decay, minus_step_size, inverse_sqrt_bias2, eps),
    SLUICE_COMPUTE_UNIT(update_sgd_split, SLUICE_UPDATE_UNITS, gradient, counts, indices,
                        parameters_in, parameters_out, remainder_in, remainder_out,
                        momentum_buffer_in, momentum_buffer_out, result, element_count,
                        gradient_words, gradient_format, state_format, first_flat_index,
                        rounding_key, grad_scale, weight_decay, momentum, minus_lr),
    SLUICE_COMPUTE_UNIT(update_adagrad_split, SLUICE_UPDATE_UNITS, gradient, counts, indices,
                        parameters_in, parameters_out, remainder_in, remainder_out, sum_sq_in,
                        sum_sq_out, result, element_count, gradient_words, gradient_format,
                        state_format, first_flat_index, rounding_key, grad_scale, weight_decay,
                        minus_lr, eps),
    SLUICE_COMPUTE_UNIT(gradient_norm, 1, gradient, result, element_count, gradient_format),
    SLUICE_COMPUTE_UNIT(checksum, 1, bytes, result, first_byte, size_bytes),
};

}  // namespace

SLUICE_SOFT_KERNELS(kKernels)
