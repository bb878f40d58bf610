#include "core/model/torch/products.h"

#include <ATen/TensorOperators.h>
#include <ATen/cpu/Utils.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>

#include "core/model/torch/devices.h"
#include "core/model/widened_pieces.h"

namespace sluice::model {
namespace {

// Rows, columns and depth of what is multiplied at once: a piece of each factor and one of the
// result, in fp32. A widened value is used up to a thousand times.
constexpr std::int64_t kPieceSide = 1024;
static_assert(3 * kPieceSide * kPieceSide * 4 == kWidenedBytes);

bool has_capability(const char* name) {
  static const auto capabilities = at::cpu::get_cpu_capabilities();
  const auto found = capabilities.find(name);
  return found != capabilities.end() && found->second.isBool() && found->second.toBool();
}

// The types for which oneDNN, which libtorch asks, has kernels of its own.
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
  explicit Scratch(at::Device device)
      : a(at::empty({kPieceSide * kPieceSide}, at::TensorOptions(device).dtype(at::kFloat))),
        b(at::empty_like(a)),
        out(at::empty_like(a)) {}
  at::Tensor a;
  at::Tensor b;
  at::Tensor out;
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

template <typename Function>
void for_each_piece(std::int64_t extent, Function&& function) {
  for (std::int64_t first = 0; first < extent; first += kPieceSide) {
    function(first, std::min(kPieceSide, extent - first));
  }
}

// Rows of `a` by columns of `b`, a piece at most each; the sums stay in fp32 over all of k.
void add_products(at::Tensor& sums, const at::Tensor& a, const at::Tensor& b,
                  const Scratch& scratch) {
  for_each_piece(a.size(1), [&](std::int64_t first, std::int64_t depth) {
    const at::Tensor b_piece = widen(scratch.b, b.narrow(0, first, depth));
    const at::Tensor a_piece = widen(scratch.a, a.narrow(1, first, depth));
    sums.addmm_(a_piece, b_piece);
  });
}

void widened_into(at::Tensor& out, const at::Tensor& bias, const at::Tensor& a,
                  const at::Tensor& b) {
  thread_local std::optional<Scratch> kept;
  if (!kept || kept->a.device() != out.device()) kept.emplace(out.device());
  const Scratch& scratch = *kept;
  for_each_piece(b.size(1), [&](std::int64_t column, std::int64_t width) {
    const at::Tensor b_columns = b.narrow(1, column, width);
    for_each_piece(a.size(0), [&](std::int64_t row, std::int64_t height) {
      at::Tensor sums = shaped(scratch.out, height, width);
      if (bias.defined())
        sums.copy_(bias.narrow(0, column, width));
      else
        sums.zero_();
      add_products(sums, a.narrow(0, row, height), b_columns, scratch);
      out.narrow(0, row, height).narrow(1, column, width).copy_(sums);
    });
  });
}

at::Tensor widened(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  widened_into(out, bias, a, b);
  return out;
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The gradients of the two factors, which are the inputs from `first` on: products of the same
// kind.
void add_factor_gradients(AutogradContext* context, const at::Tensor& gradient, std::size_t first,
                          variable_list& wanted) {
  const variable_list factors = context->get_saved_variables();
  if (context->needs_input_grad(first)) wanted[first] = widened({}, gradient, factors[1].t());
  if (context->needs_input_grad(first + 1))
    wanted[first + 1] = widened({}, factors[0].t(), gradient);
}

struct WidenedProductPlus : torch::autograd::Function<WidenedProductPlus> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& bias, const at::Tensor& a,
                            const at::Tensor& b) {
    context->save_for_backward({a, b});
    return widened(bias, a, b);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list wanted(3);
    if (context->needs_input_grad(0)) wanted[0] = gradients[0].sum(0);
    add_factor_gradients(context, gradients[0], 1, wanted);
    return wanted;
  }
};

// Without a bias: an operation of autograd's takes no tensor that is none.
struct WidenedProduct : torch::autograd::Function<WidenedProduct> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a, const at::Tensor& b) {
    context->save_for_backward({a, b});
    return widened({}, a, b);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list wanted(2);
    add_factor_gradients(context, gradients[0], 0, wanted);
    return wanted;
  }
};

}  // namespace

bool widens_products(at::ScalarType dtype, at::Device device) {
  if (!computes_on_processor(device)) return false;
  static const bool widens_bf16 = !has_products_of(at::kBFloat16);
  static const bool widens_fp16 = !has_products_of(at::kHalf);
  return (dtype == at::kBFloat16 && widens_bf16) || (dtype == at::kHalf && widens_fp16);
}

bool sums_products_apart(at::ScalarType dtype, at::Device device) {
  static const bool has_instructions = has_capability("avx512_bf16") || has_capability("amx_bf16");
  return dtype == at::kBFloat16 && computes_on_processor(device) && !has_instructions &&
         !widens_products(dtype, device);
}

at::Tensor widened_product(const at::Tensor& a, const at::Tensor& b) { return widened({}, a, b); }

at::Tensor widened_product_plus(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) {
  return WidenedProductPlus::apply(bias, a, b);
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  return widens_products(a.scalar_type(), a.device()) ? widened_product(a, b) : at::mm(a, b);
}

void product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (widens_products(a.scalar_type(), a.device()))
    widened_into(out, {}, a, b);
  else
    at::mm_out(out, a, b);
}

at::Tensor watched_product(const at::Tensor& a, const at::Tensor& b) {
  return widens_products(a.scalar_type(), a.device()) ? WidenedProduct::apply(a, b) : at::mm(a, b);
}

at::Tensor product_plus(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) {
  return widens_products(a.scalar_type(), a.device()) ? widened_product_plus(bias, a, b)
                                                      : at::addmm(bias, a, b);
}

}  // namespace sluice::model
