#include "core/model/torch/linear.h"

#include <ATen/ops/add.h>

#include "core/model/torch/products.h"

namespace sluice::model {

at::Tensor linear(const at::Tensor& x, const LayerViews& w, const std::string& name,
                  MatrixOrder order) {
  const at::Tensor& weight = w[name + ".weight"];
  const at::Tensor matrix = order == MatrixOrder::out_in ? weight.t() : weight;
  const at::Tensor* const bias = w.find(name + ".bias");
  const at::Tensor y =
      bias != nullptr ? product_plus(*bias, x, matrix) : watched_product(x, matrix);
  const at::Tensor* const a = w.find(name + ".lora_A.weight");
  if (a == nullptr) return y;
  const at::Tensor between = watched_product(x, a->t());
  return at::add(y, watched_product(between, w[name + ".lora_B.weight"].t()), w.adapter_scale());
}

}  // namespace sluice::model
