#pragma once
// Gradients into the caller's array (LayerGradient): written with 16 bits, added with fp32.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "core/model/trainable_model.h"

namespace sluice::model {

class GradientWriter {
 public:
  // `dtype` is that of the model's parameters, and of 16-bit gradients.
  GradientWriter(const LayerGradient& into, at::ScalarType dtype);

  bool adds() const { return into_.values_fp32 != nullptr; }
  // The next `rows * columns` elements of the layer, in flat order.
  at::Tensor next(at::IntArrayRef shape);
  // next() with the gradient's shape, and the gradient put there.
  void put(const at::Tensor& gradient);
  void finish() const;  // CHECKs that the layer is complete

 private:
  LayerGradient into_;
  at::ScalarType dtype_;
  std::int64_t done_ = 0;
};

}  // namespace sluice::model
