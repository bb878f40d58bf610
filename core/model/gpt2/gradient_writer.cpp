#include "core/model/gpt2/gradient_writer.h"

#include <ATen/ops/from_blob.h>

#include "core/model/gpt2/check.h"

namespace sluice::model {

GradientWriter::GradientWriter(const LayerGradient& into, at::ScalarType dtype)
    : into_(into), dtype_(dtype) {
  CHECK_NE(into.values_16bit == nullptr, into.values_fp32 == nullptr);
}

at::Tensor GradientWriter::next(at::IntArrayRef shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  CHECK_LE(done_ + count, into_.element_count);
  const std::int64_t first = done_;
  done_ += count;
  return adds() ? at::from_blob(into_.values_fp32 + first, shape, at::kFloat)
                : at::from_blob(into_.values_16bit + first, shape, dtype_);
}

void GradientWriter::put(const at::Tensor& gradient) {
  const at::Tensor target = next(gradient.sizes());
  if (adds()) {
    target.add_(gradient);
  } else {
    target.copy_(gradient);
  }
}

void GradientWriter::finish() const { CHECK_EQ(done_, into_.element_count); }

}  // namespace sluice::model
