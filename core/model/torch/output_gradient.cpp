#include "core/model/torch/output_gradient.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/model/head_chunk.h"
#include "core/model/torch/check.h"
#include "core/model/torch/products.h"

namespace sluice::model {
namespace {

template <typename Function>
void for_each_slice(const at::Tensor& table, Function&& function) {
  for (std::int64_t first = 0; first < table.size(0); first += kTiedSliceRows) {
    function(first, std::min(kTiedSliceRows, table.size(0) - first));
  }
}

}  // namespace

OutputGradient::OutputGradient(const Table& table) : table_(table) {
  if (table.waits) head_part_ = empty_part(table.answers);
}

at::Tensor OutputGradient::empty_part(std::int64_t rows) const {
  return at::empty({rows, table_.hidden},
                   table_.parts == Parts::one ? table_.like : table_.like.dtype(at::kFloat));
}

void OutputGradient::add_from_head(const at::Tensor& logits_gradient, const at::Tensor& normed) {
  if (!head_part_.defined()) head_part_ = empty_part(logits_gradient.size(1));
  if (table_.parts == Parts::one) {
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

void OutputGradient::put_tied(const BatchNumbers& numbers, const at::Tensor& x_gradient,
                              GradientWriter& writer) {
  const at::Tensor target = writer.next({table_.vocabulary, table_.hidden});
  const at::Tensor sums = numbers.sum_by_token(x_gradient.to(at::kFloat));
  if (writer.adds()) {
    for_each_slice(target, [&](std::int64_t first, std::int64_t rows) {
      if (pending_) target.narrow(0, first, rows).add_(head_part_.narrow(0, first, rows));
    });
    target.index_add_(0, numbers.distinct(), sums);
  } else {
    if (pending_) {
      target.copy_(head_part_);
      sums.add_(head_part_.index_select(0, numbers.distinct()));
    } else {
      target.zero_();
    }
    target.index_copy_(0, numbers.distinct(), sums.to(target.scalar_type()));
  }
  pending_ = false;
}

void OutputGradient::put_alone(GradientWriter& writer) {
  CHECK(pending_);
  const at::Tensor target = writer.next(head_part_.sizes());
  if (writer.adds()) {
    for_each_slice(target, [&](std::int64_t first, std::int64_t rows) {
      target.narrow(0, first, rows).add_(head_part_.narrow(0, first, rows));
    });
  } else {
    target.copy_(head_part_);
  }
  head_part_ = at::Tensor();
  pending_ = false;
}

}  // namespace sluice::model
