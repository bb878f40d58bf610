#pragma once
// Gradients into the memory of a layer's: written with 16 bits, added with fp32.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>

#include "core/model/trainable_model.h"

namespace sluice::model {

// The caller's array as one flat tensor; `dtype` is that of the parameters.
at::Tensor flat_tensor(const LayerGradient& gradient, at::ScalarType dtype);

class GradientWriter {
 public:
  // All of a layer's gradients, flat: fp32, or what the model's parameters are.
  explicit GradientWriter(at::Tensor into) : into_(std::move(into)) {}

  bool adds() const { return into_.scalar_type() == at::kFloat; }
  // The next `rows * columns` elements of the layer, in flat order.
  at::Tensor next(at::IntArrayRef shape);
  // next() with the gradient's shape, and the gradient put there.
  void put(const at::Tensor& gradient);
  void finish() const;  // CHECKs that the layer is complete

 private:
  at::Tensor into_;
  std::int64_t done_ = 0;  // elements
};

}  // namespace sluice::model
