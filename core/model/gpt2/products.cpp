#include "core/model/gpt2/products.h"

#include <ATen/cpu/Utils.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/check.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kPieceElements = kWidenedBytes / 3 / 4;

bool has_capability(const char* name) {
  static const auto capabilities = at::cpu::get_cpu_capabilities();
  const auto found = capabilities.find(name);
  return found != capabilities.end() && found->second.isBool() && found->second.toBool();
}

// What oneDNN, which libtorch asks, has kernels of its own for.
bool has_products_of(at::ScalarType dtype) {
#if defined(__x86_64__)
  if (dtype == at::kBFloat16)
    return has_capability("avx512_bw") && has_capability("avx512_vl") &&
           has_capability("avx512_dq");
  if (dtype == at::kHalf) return has_capability("avx512_fp16");
#endif
  return true;
}

// Kept by the thread: what came and went between activations that stay would leave holes.
struct Scratch {
  at::Tensor a = at::empty({kPieceElements}, at::kFloat);
  at::Tensor b = at::empty({kPieceElements}, at::kFloat);
  at::Tensor out = at::empty({kPieceElements}, at::kFloat);
};

at::Tensor shaped(const at::Tensor& scratch, std::int64_t rows, std::int64_t columns) {
  return scratch.narrow(0, 0, rows * columns).view({rows, columns});
}

// In the order that it has in memory.
at::Tensor widen(const at::Tensor& scratch, const at::Tensor& piece) {
  const bool is_transposed = piece.stride(0) == 1 && piece.stride(1) != 1;
  const at::Tensor wide = is_transposed ? shaped(scratch, piece.size(1), piece.size(0)).t()
                                        : shaped(scratch, piece.size(0), piece.size(1));
  return wide.copy_(piece);
}

// A piece of the result at a time, over all of k, so that each sum is made in fp32 as a whole.
void widened_into(at::Tensor& out, const at::Tensor& bias, const at::Tensor& a,
                  const at::Tensor& b) {
  thread_local const Scratch scratch;
  CHECK_LE(a.size(1), kPieceElements);
  const std::int64_t most = kPieceElements / std::max<std::int64_t>(1, a.size(1));
  const std::int64_t columns = std::clamp<std::int64_t>(b.size(1), 1, most);
  const std::int64_t rows = std::min(most, kPieceElements / columns);
  for (std::int64_t column = 0; column < b.size(1); column += columns) {
    const std::int64_t width = std::min(columns, b.size(1) - column);
    const at::Tensor b_piece = widen(scratch.b, b.narrow(1, column, width));
    for (std::int64_t row = 0; row < a.size(0); row += rows) {
      const std::int64_t height = std::min(rows, a.size(0) - row);
      const at::Tensor a_piece = widen(scratch.a, a.narrow(0, row, height));
      at::Tensor sums = shaped(scratch.out, height, width);
      if (bias.defined())
        at::addmm_out(sums, bias.narrow(0, column, width).to(at::kFloat), a_piece, b_piece);
      else
        at::mm_out(sums, a_piece, b_piece);
      out.narrow(0, row, height).narrow(1, column, width).copy_(sums);
    }
  }
}

at::Tensor widened(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  widened_into(out, bias, a, b);
  return out;
}

// Its gradients are products of the same kind.
struct WidenedProduct : torch::autograd::Function<WidenedProduct> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& bias,
                            const at::Tensor& a, const at::Tensor& b) {
    context->save_for_backward({a, b});
    return widened(bias, a, b);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const torch::autograd::variable_list factors = context->get_saved_variables();
    const at::Tensor& gradient = gradients[0];
    torch::autograd::variable_list wanted(3);
    if (context->needs_input_grad(0)) wanted[0] = gradient.sum(0);
    if (context->needs_input_grad(1)) wanted[1] = widened({}, gradient, factors[1].t());
    if (context->needs_input_grad(2)) wanted[2] = widened({}, factors[0].t(), gradient);
    return wanted;
  }
};

}  // namespace

bool widens_products(at::ScalarType dtype) {
  static const bool widens_bf16 = !has_products_of(at::kBFloat16);
  static const bool widens_fp16 = !has_products_of(at::kHalf);
  return (dtype == at::kBFloat16 && widens_bf16) || (dtype == at::kHalf && widens_fp16);
}

at::Tensor widened_product(const at::Tensor& a, const at::Tensor& b) { return widened({}, a, b); }

at::Tensor widened_product_plus(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) {
  return WidenedProduct::apply(bias, a, b);
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  return widens_products(a.scalar_type()) ? widened_product(a, b) : at::mm(a, b);
}

void product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (widens_products(a.scalar_type()))
    widened_into(out, {}, a, b);
  else
    at::mm_out(out, a, b);
}

at::Tensor product_plus(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) {
  return widens_products(a.scalar_type()) ? widened_product_plus(bias, a, b)
                                          : at::addmm(bias, a, b);
}

}  // namespace sluice::model
