#include "bench/optimizer/torch_chain.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>

namespace sluice::bench {

struct TorchChain::Tensors {
  at::Tensor master_weights, exp_avg, exp_avg_sq, gradient, parameters;
};

TorchChain::TorchChain(const optimizer::UpdateOptions& options,
                       const optimizer::UpdateArrays& arrays, int thread_count)
    : options_(options), tensors_(std::make_unique<Tensors>()) {
  at::set_num_threads(thread_count);
  const auto view = [&](void* data, at::ScalarType type) {
    return at::from_blob(data, {arrays.element_count}, type);
  };
  tensors_->master_weights = view(arrays.state[0], at::kFloat);
  tensors_->exp_avg = view(arrays.state[1], at::kFloat);
  tensors_->exp_avg_sq = view(arrays.state[2], at::kFloat);
  tensors_->gradient = view(const_cast<void*>(arrays.gradient), at::kFloat);
  tensors_->parameters = view(arrays.parameters, at::kBFloat16);
}

TorchChain::~TorchChain() = default;

void TorchChain::step(std::int64_t optimizer_step) {
  const at::NoGradGuard no_grad;
  const at::Tensor step = at::scalar_tensor(optimizer_step, at::kFloat);
  at::_fused_adamw_({tensors_->master_weights}, {tensors_->gradient}, {tensors_->exp_avg},
                    {tensors_->exp_avg_sq}, {}, {step}, options_.lr, options_.beta1, options_.beta2,
                    options_.weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
  tensors_->parameters.copy_(tensors_->master_weights);
}

}  // namespace sluice::bench
