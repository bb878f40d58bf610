#include "core/model/torch/gradient_writer.h"

#include <ATen/ops/from_blob.h>

#include "core/model/torch/check.h"

namespace sluice::model {

at::Tensor flat_tensor(const LayerGradient& gradient, at::ScalarType dtype) {
  CHECK_NE(gradient.values_16bit == nullptr, gradient.values_fp32 == nullptr);
  return gradient.values_fp32 != nullptr
             ? at::from_blob(gradient.values_fp32, {gradient.element_count}, at::kFloat)
             : at::from_blob(gradient.values_16bit, {gradient.element_count}, dtype);
}

at::Tensor GradientWriter::next(at::IntArrayRef shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  CHECK_LE(done_ + count, into_.numel());
  const std::int64_t first = done_;
  done_ += count;
  return into_.narrow(0, first, count).view(shape);
}

void GradientWriter::put(const at::Tensor& gradient) {
  const at::Tensor target = next(gradient.sizes());
  if (adds()) {
    target.add_(gradient);
  } else {
    target.copy_(gradient);
  }
}

void GradientWriter::finish() const { CHECK_EQ(done_, into_.numel()); }

}  // namespace sluice::model
