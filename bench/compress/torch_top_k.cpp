#include "bench/compress/torch_top_k.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/topk.h>

namespace sluice::bench {

struct TorchTopK::Tensors {
  at::Tensor values, magnitudes, largest, indices, kept;
};

TorchTopK::TorchTopK(std::span<float> values, std::int64_t k, int thread_count)
    : k_(k), tensors_(std::make_unique<Tensors>()) {
  at::set_num_threads(thread_count);
  tensors_->values =
      at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat);
  tensors_->magnitudes = at::empty_like(tensors_->values);
  tensors_->largest = at::empty({k}, at::kFloat);
  tensors_->indices = at::empty({k}, at::kLong);
  tensors_->kept = at::empty({k}, at::kFloat);
}

TorchTopK::~TorchTopK() = default;

void TorchTopK::select() {
  const at::NoGradGuard no_grad;
  at::abs_out(tensors_->magnitudes, tensors_->values);
  at::topk_out(tensors_->largest, tensors_->indices, tensors_->magnitudes, k_, /*dim=*/0,
               /*largest=*/true, /*sorted=*/false);
  at::gather_out(tensors_->kept, tensors_->values, 0, tensors_->indices);
}

std::int64_t TorchTopK::sum_of_indices() const {
  return tensors_->indices.sum().item<std::int64_t>();
}

}  // namespace sluice::bench
