#include "core/model/torch/first_calls.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/ones.h>

namespace sluice::model {

void settle_first_calls() {
  // 16 values stay on the calling thread. One function is enough: all functions, of fp32 and of
  // fp64, read the same number.
  static const at::Tensor settled = [] {
    const at::NoGradGuard no_grad;
    return at::exp(at::ones({16}, at::kFloat));
  }();
}

}  // namespace sluice::model
