#include "core/model/gpt2/tied_gradient.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/model/gpt2/check.h"
#include "core/model/gpt2/head_chunk.h"
#include "core/model/gpt2/products.h"

namespace sluice::model {
namespace {

template <typename Function>
void for_each_slice(const at::Tensor& table, Function&& function) {
  for (std::int64_t first = 0; first < table.size(0); first += kTiedSliceRows) {
    function(first, std::min(kTiedSliceRows, table.size(0) - first));
  }
}

struct RowSums {
  at::Tensor rows;  // distinct tokens, ascending
  at::Tensor sums;  // fp32, one row each
};

// For each distinct token, the sum of its positions' gradients, first position to last.
RowSums sum_by_token(std::span<const std::int64_t> tokens, const at::Tensor& x_gradient) {
  std::vector<std::int64_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return tokens[a] < tokens[b]; });

  const at::Tensor wide = x_gradient.to(at::kFloat).contiguous();
  const std::int64_t hidden = wide.size(1);
  float* const values = wide.mutable_data_ptr<float>();
  std::vector<std::int64_t> distinct, sum_at;  // the sum is made in the first position's row
  for (const std::int64_t position : order) {
    if (distinct.empty() || distinct.back() != tokens[position]) {
      distinct.push_back(tokens[position]);
      sum_at.push_back(position);
      continue;
    }
    float* const sum = values + sum_at.back() * hidden;
    const float* const next = values + position * hidden;
    for (std::int64_t i = 0; i < hidden; ++i) sum[i] += next[i];
  }
  return {at::tensor(distinct), wide.index_select(0, at::tensor(sum_at))};
}

}  // namespace

TiedGradient::TiedGradient(std::int64_t vocabulary, std::int64_t hidden, at::ScalarType dtype,
                           Parts parts)
    : head_part_(at::empty({vocabulary, hidden}, parts == Parts::one ? dtype : at::kFloat)),
      parts_(parts) {}

void TiedGradient::add_from_head(const at::Tensor& logits_gradient, const at::Tensor& normed) {
  if (parts_ == Parts::one) {
    CHECK(!pending_);
    product_into(head_part_, logits_gradient.t(), normed);
    pending_ = true;
    return;
  }
  if (!pending_) head_part_.zero_();
  for_each_slice(head_part_, [&](std::int64_t first, std::int64_t rows) {
    head_part_.narrow(0, first, rows)
        .add_(product(logits_gradient.narrow(1, first, rows).t(), normed));
  });
  pending_ = true;
}

void TiedGradient::put(std::span<const std::int64_t> tokens, const at::Tensor& x_gradient,
                       GradientWriter& writer) {
  const at::Tensor target = writer.next(head_part_.sizes());
  RowSums embedding = sum_by_token(tokens, x_gradient);
  if (writer.adds()) {
    for_each_slice(target, [&](std::int64_t first, std::int64_t rows) {
      if (pending_) target.narrow(0, first, rows).add_(head_part_.narrow(0, first, rows));
    });
    target.index_add_(0, embedding.rows, embedding.sums);
  } else {
    if (pending_) {
      target.copy_(head_part_);
      embedding.sums.add_(head_part_.index_select(0, embedding.rows));
    } else {
      target.zero_();
    }
    target.index_copy_(0, embedding.rows, embedding.sums.to(target.scalar_type()));
  }
  pending_ = false;
}

}  // namespace sluice::model
