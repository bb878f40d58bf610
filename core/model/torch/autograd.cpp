#include "core/model/torch/autograd.h"

#include <torch/csrc/autograd/autograd.h>

namespace sluice::model {

std::vector<at::Tensor> differentiate(const at::Tensor& output,
                                      const std::vector<at::Tensor>& inputs,
                                      const at::Tensor& output_gradient) {
  return torch::autograd::grad({output}, inputs, {output_gradient});
}

}  // namespace sluice::model
