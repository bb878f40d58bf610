#include "tests/core/model/gpt2/plain_gpt2.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <string>

#include "base/float16.h"
#include "tests/core/model/plain_dropout.h"
#include "tests/core/model/plain_model.h"

namespace sluice::model {
namespace {

at::Tensor plain_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor centred = x - x.mean(-1, true);
  const at::Tensor variance = (centred * centred).mean(-1, true);
  return centred / (variance + 1e-5).sqrt() * weight + bias;
}

at::Tensor plain_gelu(const at::Tensor& x) {
  const double factor = std::sqrt(2.0 / std::numbers::pi);
  return 0.5 * x * (1 + (factor * (x + 0.044715 * x * x * x)).tanh());
}

// One window, one head: every position looks at itself and what came before.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const auto& dropped) {
  const at::Tensor allowed = at::ones({q.size(0), q.size(0)}).tril() > 0;
  at::Tensor scores = q.matmul(k.t()) / std::sqrt(static_cast<double>(q.size(1)));
  scores = scores.masked_fill(allowed.logical_not(), -INFINITY);
  return dropped(scores.softmax(-1)).matmul(v);
}

at::Tensor self_attention(const at::Tensor& x, const PlainTensors& w, const std::string& block,
                          std::int64_t heads, const auto& dropped) {
  const std::int64_t hidden = x.size(1), width = hidden / heads;
  const at::Tensor qkv =
      x.matmul(w.at(block + ".attn.c_attn.weight")) + w.at(block + ".attn.c_attn.bias");
  std::vector<at::Tensor> mixed;
  for (std::int64_t head = 0; head < heads; ++head) {
    mixed.push_back(attend(
        qkv.narrow(1, head * width, width), qkv.narrow(1, hidden + head * width, width),
        qkv.narrow(1, 2 * hidden + head * width, width),
        [&](const at::Tensor& weights) { return dropped(weights, head * weights.numel()); }));
  }
  return at::cat(mixed, 1).matmul(w.at(block + ".attn.c_proj.weight")) +
         w.at(block + ".attn.c_proj.bias");
}

// Loss sum of one window, (sequence) tokens in, (sequence) targets.
at::Tensor window_loss(const ModelShape& shape, const PlainTensors& w,
                       const at::Tensor& input_table, const at::Tensor& tokens,
                       const at::Tensor& targets, const PlainDrop& drop) {
  const DropShares& shares = shape.dropout;
  at::Tensor x = input_table.index({tokens}) + w.at("wpe.weight").narrow(0, 0, tokens.size(0));
  x = drop(x, 0, 0, shares.embedding);
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const std::string block = "h." + std::to_string(i);
    const auto part = [&](const char* name) { return w.at(block + name); };
    const auto of_weights = [&](const at::Tensor& weights, std::int64_t first) {
      return drop(weights, i + 1, 0, shares.attention, first);
    };
    x = x + drop(self_attention(plain_norm(x, part(".ln_1.weight"), part(".ln_1.bias")), w, block,
                                shape.heads, of_weights),
                 i + 1, 1, shares.rows);
    const at::Tensor wide = plain_gelu(
        plain_norm(x, part(".ln_2.weight"), part(".ln_2.bias")).matmul(part(".mlp.c_fc.weight")) +
        part(".mlp.c_fc.bias"));
    x = x + drop(wide.matmul(part(".mlp.c_proj.weight")) + part(".mlp.c_proj.bias"), i + 1, 2,
                 shares.rows);
  }
  const at::Tensor logits =
      plain_norm(x, w.at("ln_f.weight"), w.at("ln_f.bias")).matmul(w.at("wte.weight").t());
  return -logits.log_softmax(-1).gather(1, targets.unsqueeze(1)).sum();
}

}  // namespace

PlainResult plain_gpt2(const ModelShape& shape, Float16Kind kind,
                       std::span<const std::uint16_t> parameters, const TokenBatch& batch,
                       TableUse use) {
  std::vector<float> wide;
  for (const std::uint16_t value : parameters) wide.push_back(float_from_float16(kind, value));
  return plain_gpt2(shape, wide, batch, use);
}

PlainResult plain_gpt2(const ModelShape& shape, std::vector<float> parameters,
                       const TokenBatch& batch, TableUse use) {
  const FlatLayout layout = shape.flat_layout();
  const PlainTensors w = plain_tensors(layout, parameters);
  const at::Tensor input_table =
      use == TableUse::both ? w.at("wte.weight") : w.at("wte.weight").detach();

  at::Tensor loss = at::zeros({});
  for (std::int64_t row = 0; row < batch.batch; ++row) {
    const std::size_t first = row * batch.sequence, count = batch.sequence;
    loss =
        loss + window_loss(shape, w, input_table, numbers_of(batch.inputs.subspan(first, count)),
                           numbers_of(batch.targets.subspan(first, count)), plain_drop(batch, row));
  }
  loss = loss / static_cast<double>(batch.batch * batch.sequence);
  loss.backward();
  return {loss.item<double>(), flat_gradients(layout, w)};
}

}  // namespace sluice::model
