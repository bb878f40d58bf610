// scaled_dot_product_attention takes the way that it takes on the CPU: the CPU's flash attention,
// under the name that libtorch has for a device's own, or products and a softmax.

#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <array>
#include <tuple>

#include "soft/accelerator/alias.h"
#include "soft/accelerator/torch_parts.h"

namespace sluice::soft_accelerator {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// The choice looks at shapes and at whether gradients are wanted.
Tensor for_choice(const Tensor& tensor) {
  Tensor alias = Aliases().of(tensor);
  return alias.set_requires_grad(tensor.requires_grad());
}

std::int64_t choose(const Tensor& query, const Tensor& key, const Tensor& value,
                    const OptionalTensor& mask, double dropout, bool is_causal,
                    std::optional<double> scale, bool shares_heads) {
  const OptionalTensor seen_mask =
      mask && mask->defined() ? OptionalTensor(for_choice(*mask)) : std::nullopt;
  const auto choice = static_cast<at::SDPBackend>(
      at::_fused_sdp_choice(for_choice(query), for_choice(key), for_choice(value), seen_mask,
                            dropout, is_causal, scale, shares_heads));
  return static_cast<std::int64_t>(
      choice == at::SDPBackend::flash_attention ? at::SDPBackend::overrideable : choice);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> attend(
    const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& bias,
    double dropout, bool is_causal, bool /*returns_mask*/, std::optional<double> scale) {
  auto [output, log_sums] = at::_scaled_dot_product_flash_attention_for_cpu(
      query, key, value, dropout, is_causal, bias, scale);
  const Tensor no_seed = at::empty({0}, query.options().dtype(at::kLong));
  return {output, log_sums, {}, {}, query.size(2), key.size(2), no_seed, no_seed, {}};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> attend_backward(
    const Tensor& gradient, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& bias, std::array<bool, 4> /*wanted*/, const Tensor& output,
    const Tensor& log_sums, const Tensor& /*query_starts*/, const Tensor& /*key_starts*/,
    c10::SymInt /*longest_query*/, c10::SymInt /*longest_key*/, double dropout, bool is_causal,
    const Tensor& /*seed*/, const Tensor& /*offset*/, std::optional<double> scale) {
  auto [of_query, of_key, of_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      gradient, query, key, value, output, log_sums, dropout, is_causal,
      bias.defined() ? OptionalTensor(bias) : std::nullopt, scale);
  return {of_query, of_key, of_value, Tensor()};
}

}  // namespace

void register_attention() {
  static auto* const aten = new torch::Library(torch::Library::IMPL, "aten",
                                               c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  aten->impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(attend));
  aten->impl("_scaled_dot_product_fused_attention_overrideable_backward",
             TORCH_FN(attend_backward));
  at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&choose);
}

}  // namespace sluice::soft_accelerator
