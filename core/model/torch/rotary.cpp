#include "core/model/torch/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/model/rotary_frequencies.h"

namespace sluice::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// (windows, sequence, heads, head_dim) of rows.
at::Tensor by_position(const at::Tensor& rows, WindowShape window, std::int64_t head_dim) {
  return rows.view({window.batch, window.sequence, rows.size(1) / head_dim, head_dim});
}

// The same for every head of a position: (sequence, 1, head_dim / 2).
at::Tensor for_heads(const at::Tensor& angles, WindowShape window) {
  return angles.narrow(0, 0, window.sequence).unsqueeze(1);
}

at::Tensor turn(const at::Tensor& rows, const at::Tensor& cosine, const at::Tensor& sine,
                WindowShape window) {
  const std::int64_t half = cosine.size(-1);
  const at::Tensor in = by_position(rows, window, 2 * half);
  at::Tensor turned_rows = at::empty_like(rows, rows.options(), at::MemoryFormat::Contiguous);
  const at::Tensor out = by_position(turned_rows, window, 2 * half);
  const at::Tensor first = in.narrow(-1, 0, half);
  const at::Tensor second = in.narrow(-1, half, half);
  out.narrow(-1, 0, half).copy_(first * cosine - second * sine);
  out.narrow(-1, half, half).copy_(second * cosine + first * sine);
  return turned_rows;
}

struct Turned : torch::autograd::Function<Turned> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const at::Tensor& cosine, const at::Tensor& sine, std::int64_t batch,
                            std::int64_t sequence) {
    const WindowShape window{batch, sequence};
    context->save_for_backward({cosine, sine});
    context->saved_data["batch"] = batch;
    context->saved_data["sequence"] = sequence;
    return turn(rows, for_heads(cosine, window), for_heads(sine, window), window);
  }

  // Back by the same angles, and times the same factor.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const WindowShape window{context->saved_data["batch"].toInt(),
                             context->saved_data["sequence"].toInt()};
    return {turn(gradients[0].contiguous(), for_heads(saved[0], window),
                 for_heads(saved[1], window).neg(), window),
            {},
            {},
            {},
            {}};
  }
};

}  // namespace

// In double until they are cosines: a late position is a large number of radians.
Angles rotary_angles(std::int64_t sequence, std::int64_t head_dim, const Rotary& rotary,
                     const at::TensorOptions& like) {
  const at::TensorOptions wide = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor frequencies = at::tensor(rotary_frequencies(rotary, head_dim), wide);
  const at::Tensor angles = at::outer(at::arange(0, sequence, wide), frequencies);
  const double factor = rotary_attention_factor(rotary);
  return {(angles.cos() * factor).to(like), (angles.sin() * factor).to(like)};
}

at::Tensor turned(const at::Tensor& rows, const Angles& angles, WindowShape window) {
  return Turned::apply(rows, angles.cosine, angles.sine, window.batch, window.sequence);
}

}  // namespace sluice::model
