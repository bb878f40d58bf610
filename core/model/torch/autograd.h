#pragma once
// libtorch's autograd engine, called for one graph; a file of its own because its headers are the
// heaviest we include.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <vector>

namespace sluice::model {

// The gradients with respect to `inputs`, and the graph is freed. Runs on the calling thread.
std::vector<at::Tensor> differentiate(const at::Tensor& output,
                                      const std::vector<at::Tensor>& inputs,
                                      const at::Tensor& output_gradient);

}  // namespace sluice::model
