#include "core/model/torch/rms_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/rsqrt.h>
#include <torch/csrc/autograd/custom_function.h>

namespace sluice::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Normalised : torch::autograd::Function<Normalised> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double epsilon) {
    at::Tensor wide = x.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    const at::Tensor scale = at::rsqrt(wide.square().mean({-1}, /*keepdim=*/true).add_(epsilon));
    context->save_for_backward({x, scale});
    return wide.mul_(scale).to(x.scalar_type());
  }

  // With y = x s and s the scale: dx = s (dy - y mean(dy y)).
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& scale = saved[1];
    const at::Tensor wide = saved[0].to(at::kFloat) * scale;
    at::Tensor gradient = gradients[0].to(at::kFloat);
    const at::Tensor mean = (gradient * wide).mean({-1}, /*keepdim=*/true);
    gradient = gradient - wide * mean;
    return {gradient.mul_(scale).to(saved[0].scalar_type()), {}};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return Normalised::apply(x, epsilon) * weight;
}

}  // namespace sluice::model
