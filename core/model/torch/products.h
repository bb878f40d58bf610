#pragma once
// Matrix products of tensors of 16 bits or fp32: sums in fp32, one rounding of the result.
//
// Where the processor multiplies 16-bit numbers, libtorch's own. Where it does not (bf16 without
// AVX-512), libtorch has a plain loop only, 7 to 60 times slower than the product in fp32: then
// pieces of the factors are widened, and multiplied as fp32.
//
// Thread contract: as libtorch's.

#include <ATen/core/Tensor.h>

namespace sluice::model {

// Whether `product` and `product_plus` of this type widen on a device. Always the same on one
// machine.
bool widens_products(at::ScalarType dtype, at::Device device);
// Whether oneDNN adds those of this type up in fp32 of its own, before it rounds all of the result:
// a processor that has no instructions for them needs memory for that.
bool sums_products_apart(at::ScalarType dtype, at::Device device);

// a (m, k) x b (k, n), of which no gradients are asked; `out` has the factors' type.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);
void product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
// With gradients where they are watched; bias (n) is added to every row before the rounding.
at::Tensor watched_product(const at::Tensor& a, const at::Tensor& b);
at::Tensor product_plus(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b);

// The widened ones, on any processor: for tests of them.
at::Tensor widened_product(const at::Tensor& a, const at::Tensor& b);
at::Tensor widened_product_plus(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b);

}  // namespace sluice::model
