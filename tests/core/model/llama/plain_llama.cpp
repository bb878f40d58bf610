#include "tests/core/model/llama/plain_llama.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/core/model/plain_model.h"

namespace sluice::model {
namespace {

at::Tensor root_mean_square_normed(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x / ((x * x).mean(-1, true) + epsilon).sqrt() * weight;
}

// Positions that a pair of values needs for a whole turn, as transformers' modeling_rope_utils
// stretches them: it thinks in wavelengths.
double wavelength(const Rotary& rotary, std::int64_t head_dim, std::int64_t pair) {
  const double turn = 2 * M_PI, width = static_cast<double>(head_dim);
  const double context = static_cast<double>(rotary.original_sequence);
  const double plain = turn * std::pow(rotary.theta, 2.0 * static_cast<double>(pair) / width);
  const double stretched = plain * rotary.factor;
  if (rotary.scaling == RopeScaling::linear) return stretched;
  if (rotary.scaling == RopeScaling::llama3) {
    const double low = context / rotary.low_frequency, high = context / rotary.high_frequency;
    if (plain < high) return plain;
    if (plain > low) return stretched;
    const double smooth =
        (context / plain - rotary.low_frequency) / (rotary.high_frequency - rotary.low_frequency);
    return 1 / ((1 - smooth) / stretched + smooth / plain);
  }
  if (rotary.scaling == RopeScaling::yarn) {
    const auto correction = [&](double rotations) {
      return width * std::log(context / (rotations * turn)) / (2 * std::log(rotary.theta));
    };
    const double low = std::fmax(std::floor(correction(rotary.beta_fast)), 0);
    const double high = std::fmin(std::ceil(correction(rotary.beta_slow)), width - 1);
    const double ramp =
        std::fmin(std::fmax((static_cast<double>(pair) - low) / (high - low), 0), 1);
    return 1 / (ramp / stretched + (1 - ramp) / plain);
  }
  return plain;
}

// One head, (sequence, head_dim): each pair of values as a complex number times e^(i angle).
at::Tensor rotated(const at::Tensor& x, const Rotary& rotary) {
  const std::int64_t half = x.size(1) / 2;
  std::vector<at::Tensor> first, second;
  for (std::int64_t i = 0; i < half; ++i) {
    const at::Tensor angle =
        at::arange(x.size(0), at::kDouble) * (2 * M_PI / wavelength(rotary, x.size(1), i));
    const at::Tensor cosine = angle.cos().to(at::kFloat), sine = angle.sin().to(at::kFloat);
    const at::Tensor a = x.select(1, i), b = x.select(1, i + half);
    first.push_back(a * cosine - b * sine);
    second.push_back(a * sine + b * cosine);
  }
  first.insert(first.end(), second.begin(), second.end());
  const at::Tensor whole = at::stack(first, 1);
  if (rotary.scaling != RopeScaling::yarn) return whole;
  return whole * (rotary.attention_factor > 0 ? rotary.attention_factor
                                              : 0.1 * std::log(rotary.factor) + 1);
}

// A query sees itself and the `seen` - 1 tokens before it.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  std::int64_t seen) {
  const at::Tensor row = at::arange(q.size(0)).unsqueeze(1), column = at::arange(q.size(0));
  const at::Tensor allowed = (column <= row).logical_and(column > row - seen);
  at::Tensor scores = q.matmul(k.t()) / std::sqrt(static_cast<double>(q.size(1)));
  scores = scores.masked_fill(allowed.logical_not(), -INFINITY);
  return scores.softmax(-1).matmul(v);
}

class Block {
 public:
  Block(const ModelShape& shape, const PlainTensors& w, std::int64_t index)
      : shape_(shape), w_(w), index_(index), prefix_("layers." + std::to_string(index) + ".") {}

  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor middle = x + self_attention(normed(x, "input_layernorm"));
    const at::Tensor inner = normed(middle, "post_attention_layernorm");
    const at::Tensor gate = linear(inner, "mlp.gate_proj");
    return middle + linear(gate * gate.sigmoid() * linear(inner, "mlp.up_proj"), "mlp.down_proj");
  }

 private:
  const at::Tensor& part(const std::string& name) const { return w_.at(prefix_ + name); }
  at::Tensor normed(const at::Tensor& x, const std::string& name) const {
    return root_mean_square_normed(x, part(name + ".weight"), shape_.norm_eps);
  }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    const at::Tensor product = x.matmul(part(name + ".weight").t());
    return w_.contains(prefix_ + name + ".bias") ? product + part(name + ".bias") : product;
  }
  // Head `index` of queries or keys.
  at::Tensor head(const at::Tensor& rows, const std::string& name, std::int64_t index) const {
    const std::int64_t width = shape_.head_width();
    at::Tensor x = rows.narrow(1, index * width, width);
    if (shape_.qk_norm) x = normed(x, "self_attn." + name + "_norm");
    return rotated(x, shape_.rotary);
  }
  at::Tensor self_attention(const at::Tensor& x) const {
    const at::Tensor q = linear(x, "self_attn.q_proj"), k = linear(x, "self_attn.k_proj"),
                     v = linear(x, "self_attn.v_proj");
    const std::int64_t width = shape_.head_width();
    const bool is_windowed = shape_.window.tokens > 0 && index_ >= shape_.window.first_block;
    const std::int64_t seen = is_windowed ? shape_.window.tokens : x.size(0);
    std::vector<at::Tensor> mixed;
    for (std::int64_t i = 0; i < shape_.heads; ++i) {
      const std::int64_t shared = i / (shape_.heads / shape_.kv_heads);
      mixed.push_back(
          attend(head(q, "q", i), head(k, "k", shared), v.narrow(1, shared * width, width), seen));
    }
    return linear(at::cat(mixed, 1), "self_attn.o_proj");
  }

  const ModelShape& shape_;
  const PlainTensors& w_;
  std::int64_t index_;
  std::string prefix_;
};

// Loss sum of one window.
at::Tensor window_loss(const ModelShape& shape, const PlainTensors& w, const at::Tensor& tokens,
                       const at::Tensor& targets) {
  at::Tensor x = w.at("embed_tokens.weight").index({tokens});
  for (std::int64_t i = 0; i < shape.layers; ++i) x = Block(shape, w, i).forward(x);
  x = root_mean_square_normed(x, w.at("norm.weight"), shape.norm_eps);
  const at::Tensor& table = w.at(shape.tied_tables ? "embed_tokens.weight" : "lm_head.weight");
  const at::Tensor log_odds = x.matmul(table.t()).log_softmax(-1);
  const at::Tensor counted = targets >= 0;
  const at::Tensor picked = log_odds.gather(1, targets.clamp_min(0).unsqueeze(1)).squeeze(1);
  return -(picked * counted).sum();
}

}  // namespace

PlainLlama plain_llama(const ModelShape& shape, std::span<const float> parameters,
                       const TokenBatch& batch) {
  std::vector<float> own(parameters.begin(), parameters.end());
  const FlatLayout layout = shape.flat_layout();
  const PlainTensors w = plain_tensors(layout, own);
  at::Tensor loss = at::zeros({});
  for (std::int64_t row = 0; row < batch.batch; ++row) {
    const std::size_t first = row * batch.sequence, count = batch.sequence;
    loss = loss + window_loss(shape, w, numbers_of(batch.inputs.subspan(first, count)),
                              numbers_of(batch.targets.subspan(first, count)));
  }
  loss = loss / static_cast<double>(std::ranges::count_if(
                    batch.targets, [](std::int32_t target) { return target >= 0; }));
  loss.backward();
  return {loss.item<double>(), flat_gradients(layout, w)};
}

}  // namespace sluice::model
