// Widened products beside products in fp64, whatever this processor's own are made by.

#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <catch2/catch.hpp>

#include "core/model/torch/products.h"

namespace sluice::model {
namespace {

at::Tensor made(at::IntArrayRef shape, at::ScalarType dtype) { return at::randn(shape).to(dtype); }

// By how much it is off at most: in roundings that the largest value may have.
double roundings_off(const at::Tensor& is, const at::Tensor& wanted) {
  const double ulp = is.scalar_type() == at::kHalf ? 0x1p-11 : 0x1p-8;
  const at::Tensor wide = wanted.to(at::kDouble);
  return (is.to(at::kDouble) - wide).abs().max().item<double>() /
         (wide.abs().max().item<double>() * ulp);
}

at::Tensor plain(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor sum = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  return bias.defined() ? sum + bias.to(at::kDouble) : sum;
}

}  // namespace

TEST_CASE("a widened product is that of its factors, rounded once") {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    const at::Tensor a = made({70, 90}, dtype);
    const at::Tensor b = made({90, 50}, dtype);
    const at::Tensor bias = made({50}, dtype);
    CHECK(roundings_off(widened_product(a, b), plain({}, a, b)) <= 1.01);
    CHECK(roundings_off(widened_product_plus(bias, a, b), plain(bias, a, b)) <= 1.01);
    // Transposed factors, as gradients have them.
    const at::Tensor c = made({50, 90}, dtype);
    CHECK(roundings_off(widened_product(a, c.t()), plain({}, a, c.t())) <= 1.01);
    CHECK(roundings_off(widened_product(b.t(), a.t()), plain({}, b.t(), a.t())) <= 1.01);
    // This processor's own is one of the two.
    CHECK(roundings_off(product(a, b), plain({}, a, b)) <= 2);
    CHECK(roundings_off(product_plus(bias, a, b), plain(bias, a, b)) <= 2);
  }
}

TEST_CASE("a product of several pieces and one of fewer are each within a rounding of the exact") {
  // A piece has at most 1024 a side: of the result these are 5 x 3, of 2 along k.
  const at::Tensor a = made({5000, 2000}, at::kBFloat16);
  const at::Tensor b = made({2000, 3000}, at::kBFloat16);
  const at::Tensor whole = widened_product(a, b);
  CHECK(whole.sizes() == at::IntArrayRef({5000, 3000}));
  for (const std::int64_t row : {0, 1990, 1999, 4990}) {
    const at::Tensor piece = widened_product(a.narrow(0, row, 10), b);
    // One from the other they may be two.
    const at::Tensor exact = plain({}, a.narrow(0, row, 10), b);
    CHECK(roundings_off(whole.narrow(0, row, 10), exact) <= 1.01);
    CHECK(roundings_off(piece, exact) <= 1.01);
  }
}

TEST_CASE("gradients of a widened product are those of the plain one") {
  const auto leaf = [](at::IntArrayRef shape) {
    return made(shape, at::kBFloat16).set_requires_grad(true);
  };
  const at::Tensor bias = leaf({40});
  const at::Tensor a = leaf({60, 30});
  const at::Tensor b = leaf({30, 40});
  const at::Tensor gradient = made({60, 40}, at::kBFloat16);
  const auto found =
      torch::autograd::grad({widened_product_plus(bias, a, b)}, {bias, a, b}, {gradient});
  const auto wanted =
      torch::autograd::grad({plain(bias, a, b)}, {bias, a, b}, {gradient.to(at::kDouble)});
  for (std::size_t i = 0; i < 3; ++i) CHECK(roundings_off(found[i], wanted[i]) <= 1);
  // What is not asked for is not made.
  const at::Tensor constant = made({30, 40}, at::kBFloat16);
  const at::Tensor sum = widened_product_plus(made({40}, at::kBFloat16), a, constant);
  const auto of_a = torch::autograd::grad({sum}, {a}, {gradient});
  CHECK(of_a[0].sizes() == a.sizes());
}

}  // namespace sluice::model
