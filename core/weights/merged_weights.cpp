#include "core/weights/merged_weights.h"

#include <algorithm>

#include "base/check.h"
#include "core/model/architecture.h"

namespace sluice::weights {
namespace {

std::int64_t first_of(const model::FlatLayout& layout, const std::string& name) {
  const auto found = std::ranges::find(layout.tensors, name, &model::TensorInfo::name);
  CHECK(found != layout.tensors.end());
  return found->first;
}

}  // namespace

MergedWeights::MergedWeights(const model::ModelShape& shape, const Checkpoint& base,
                             std::vector<float> adapters)
    : base_(base),
      adapters_(std::move(adapters)),
      rank_(shape.lora.rank),
      scale_(shape.lora.scale()),
      is_in_out_(model::architecture_of(shape).is_in_out) {
  const model::FlatLayout own = shape.base_layout(), trained = shape.flat_layout();
  CHECK_EQ(std::ssize(adapters_), trained.parameter_count);
  for (const model::LinearModule& module : model::adapted_modules(shape)) {
    matrices_.push_back({module, first_of(own, module.name + ".weight"),
                         first_of(trained, module.name + ".lora_A.weight"),
                         first_of(trained, module.name + ".lora_B.weight")});
  }
}

float MergedWeights::added(const Matrix& matrix, std::int64_t element) const {
  const std::int64_t width = is_in_out_ ? matrix.module.out : matrix.module.in;
  const std::int64_t row = element / width, column = element % width;
  const std::int64_t out = is_in_out_ ? column : row;
  const std::int64_t in = is_in_out_ ? row : column;
  double sum = 0;
  for (std::int64_t r = 0; r < rank_; ++r) {
    const auto a = static_cast<std::size_t>(matrix.a + r * matrix.module.in + in);
    const auto b = static_cast<std::size_t>(matrix.b + out * rank_ + r);
    sum += double{adapters_[b]} * adapters_[a];
  }
  return static_cast<float>(scale_ * sum);
}

Status MergedWeights::fill(std::int64_t first, std::span<float> out) const {
  RETURN_IF_ERROR(base_.fill(first, out));
  const std::int64_t end = first + std::ssize(out);
  for (const Matrix& matrix : matrices_) {
    const std::int64_t low = std::max(first, matrix.weight);
    const std::int64_t high = std::min(end, matrix.weight + matrix.module.in * matrix.module.out);
    for (std::int64_t i = low; i < high; ++i)
      out[static_cast<std::size_t>(i - first)] += added(matrix, i - matrix.weight);
  }
  return ok_status();
}

}  // namespace sluice::weights
