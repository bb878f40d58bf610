// Widened attention beside a plain one in fp64, whatever this processor's own is made by.

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/model/torch/attention.h"
#include "core/model/torch/products.h"
#include "core/model/widened_pieces.h"

namespace sluice::model {
namespace {

// By the definition, all scores at once.
at::Tensor plain_attention(const at::Tensor& qkv, WindowShape window, std::int64_t heads) {
  const std::int64_t width = qkv.size(1) / 3 / heads;
  const at::Tensor all = qkv.view({window.batch, window.sequence, 3, heads, width});
  const auto part = [&](std::int64_t which) { return all.select(2, which).transpose(1, 2); };
  const at::Tensor later =
      at::ones({window.sequence, window.sequence}, qkv.options()).triu(1).to(at::kBool);
  const at::Tensor scores =
      (at::matmul(part(0), part(1).transpose(2, 3)) / std::sqrt(static_cast<double>(width)))
          .masked_fill(later, -std::numeric_limits<double>::infinity());
  return at::matmul(scores.softmax(-1), part(2))
      .transpose(1, 2)
      .reshape({window.tokens(), heads * width});
}

double relative_error(const at::Tensor& is, const at::Tensor& wanted) {
  const at::Tensor off = is.to(at::kDouble) - wanted;
  return (off.norm() / wanted.norm()).item<double>();
}

void check_beside_plain(WindowShape window, std::int64_t heads, std::int64_t width,
                        at::ScalarType dtype) {
  // What a rounding of every value gives, and a little for the result's own in backward.
  const double most = dtype == at::kHalf ? 0x1p-11 : 0x1p-8;
  const at::Tensor qkv =
      at::randn({window.tokens(), 3 * heads * width}).to(dtype).set_requires_grad(true);
  const at::Tensor gradient = at::randn({window.tokens(), heads * width}).to(dtype);
  const at::Tensor wide = qkv.detach().to(at::kDouble).set_requires_grad(true);
  const at::Tensor wanted = plain_attention(wide, window, heads);
  const at::Tensor of_wanted =
      torch::autograd::grad({wanted}, {wide}, {gradient.to(at::kDouble)})[0];
  const auto own = [](const at::Tensor& rows, WindowShape shape, std::int64_t of) {
    return attention(rows, shape, of);
  };
  for (const auto& compute : {widened_attention, +own}) {  // this processor's own is one
    const at::Tensor mixed = compute(qkv, window, heads);
    CHECK(mixed.scalar_type() == dtype);
    CHECK(relative_error(mixed, wanted) < most);
    const at::Tensor found = torch::autograd::grad({mixed}, {qkv}, {gradient})[0];
    CHECK(relative_error(found, of_wanted) < 2 * most);
  }
}

}  // namespace

TEST_CASE("widened attention and its gradients are those of the definition") {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    check_beside_plain({3, 20}, 2, 8, dtype);
    check_beside_plain({1, 1}, 1, 4, dtype);
    check_beside_plain({1, 130}, 3, 64, dtype);
  }
}

TEST_CASE("windows of several pieces are each as if alone") {
  const WindowShape window{51, 64};
  const std::int64_t heads = 4, hidden = 256;
  REQUIRE(widened_attention_bytes(window, hidden) <
          widened_attention_bytes({1, 64}, hidden) * window.batch);
  REQUIRE(widened_attention_bytes(window, hidden) <= kWidenedBytes);
  const at::Tensor qkv =
      at::randn({window.tokens(), 3 * hidden}).to(at::kBFloat16).set_requires_grad(true);
  const at::Tensor gradient = at::randn({window.tokens(), hidden}).to(at::kBFloat16);
  const at::Tensor mixed = widened_attention(qkv, window, heads);
  const at::Tensor found = torch::autograd::grad({mixed}, {qkv}, {gradient})[0];
  for (std::int64_t i = 0; i < window.batch; ++i) {
    const at::Tensor one = qkv.detach().narrow(0, i * 64, 64).set_requires_grad(true);
    const at::Tensor alone = widened_attention(one, {1, 64}, heads);
    const at::Tensor of_one =
        torch::autograd::grad({alone}, {one}, {gradient.narrow(0, i * 64, 64)})[0];
    CHECK(alone.equal(mixed.narrow(0, i * 64, 64)));
    CHECK(of_one.equal(found.narrow(0, i * 64, 64)));
  }
}

}  // namespace sluice::model
