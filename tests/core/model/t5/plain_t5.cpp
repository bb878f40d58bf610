#include "tests/core/model/t5/plain_t5.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/core/model/plain_dropout.h"
#include "tests/core/model/plain_model.h"

namespace sluice::model {
namespace {

class WrittenT5 {
 public:
  WrittenT5(const ModelShape& shape, const PlainTensors& w, const PlainDrop& drop)
      : shape_(shape), w_(w), drop_(drop) {}

  // The logits of one row, of whose source the first `seen` tokens are seen.
  at::Tensor logits(const at::Tensor& source, const at::Tensor& decoder_inputs,
                    std::int64_t seen) const {
    const at::Tensor unseen = at::arange(source.size(0)) >= seen;
    at::Tensor x = dropped(w_.at("shared.weight").index({source}), 0, 0);
    const at::Tensor both_ways = bias("encoder", source.size(0), /*both_ways=*/true);
    for (std::int64_t i = 0; i < shape_.stacks.encoder_layers; ++i) {
      const std::string name = "encoder.block." + std::to_string(i) + ".layer.";
      const at::Tensor inner = normed(x, name + "0.layer_norm");
      x = x + attention(inner, inner, {i + 1, 0, name + "0.SelfAttention"}, both_ways, unseen);
      x = x + mlp(x, i + 1, name + "1");
    }
    const at::Tensor encoded = dropped(normed(x, "encoder.final_layer_norm"), 0, 2);
    at::Tensor y = dropped(w_.at("shared.weight").index({decoder_inputs}), 0, 1);
    const at::Tensor back = bias("decoder", decoder_inputs.size(0), /*both_ways=*/false);
    for (std::int64_t i = 0; i < shape_.layers - shape_.stacks.encoder_layers; ++i) {
      const std::string name = "decoder.block." + std::to_string(i) + ".layer.";
      const at::Tensor inner = normed(y, name + "0.layer_norm");
      const at::Tensor ahead =
          at::ones({y.size(0), y.size(0)}, at::TensorOptions().dtype(at::kBool)).triu(1);
      const std::int64_t layer = shape_.stacks.encoder_layers + i + 1;
      y = y + attention(inner, inner, {layer, 0, name + "0.SelfAttention"}, back, ahead);
      y = y + attention(normed(y, name + "1.layer_norm"), encoded,
                        {layer, 2, name + "1.EncDecAttention"}, {}, unseen);
      y = y + mlp(y, layer, name + "2");
    }
    y = dropped(normed(y, "decoder.final_layer_norm"), shape_.layers + 1, 0);
    if (!shape_.tied_tables) return y.matmul(w_.at("lm_head.weight").t());
    return (y / std::sqrt(static_cast<double>(shape_.hidden))).matmul(w_.at("shared.weight").t());
  }

 private:
  at::Tensor normed(const at::Tensor& x, const std::string& name) const {
    return x / ((x * x).mean(-1, true) + shape_.norm_eps).sqrt() * w_.at(name + ".weight");
  }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    return x.matmul(w_.at(name + ".weight").t());
  }
  at::Tensor dropped(const at::Tensor& x, std::int64_t layer, std::uint32_t place,
                     std::int64_t first = 0) const {
    return drop_(x, layer, place, shape_.dropout.rows, first);
  }
  at::Tensor mlp(const at::Tensor& x, std::int64_t layer, const std::string& name) const {
    const at::Tensor wide = dropped(widened(x, name), layer, 4);
    return dropped(linear(wide, name + ".DenseReluDense.wo"), layer, 5);
  }
  at::Tensor widened(const at::Tensor& x, const std::string& name) const {
    const at::Tensor inner = normed(x, name + ".layer_norm");
    const std::string dense = name + ".DenseReluDense.";
    if (!shape_.stacks.gated_mlp) return linear(inner, dense + "wi").clamp_min(0);
    const at::Tensor gate = linear(inner, dense + "wi_0");
    const at::Tensor tanh = (std::sqrt(2 / M_PI) * (gate + 0.044715 * gate.pow(3))).tanh();
    return 0.5 * gate * (1 + tanh) * linear(inner, dense + "wi_1");
  }

  // [heads, queries, keys]; the formula of transformers' _relative_position_bucket.
  at::Tensor bias(const std::string& stack, std::int64_t length, bool both_ways) const {
    const at::Tensor& table =
        w_.at(stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight");
    const at::Tensor positions = at::arange(length);
    at::Tensor ahead = positions.unsqueeze(0) - positions.unsqueeze(1);
    std::int64_t count = table.size(0);
    at::Tensor buckets = at::zeros_like(ahead);
    if (both_ways) {
      count /= 2;
      buckets = (ahead > 0).to(at::kLong) * count;
      ahead = ahead.abs();
    } else {
      ahead = -ahead.clamp_max(0);
    }
    const std::int64_t exact = count / 2;
    const double scale =
        std::log(static_cast<double>(shape_.bucket_distance()) / static_cast<double>(exact));
    const at::Tensor large = exact + ((ahead.to(at::kFloat) / static_cast<double>(exact)).log() /
                                      scale * static_cast<double>(count - exact))
                                         .to(at::kLong);
    buckets = buckets + at::where(ahead < exact, ahead, large.clamp_max(count - 1));
    return table.index({buckets}).permute({2, 0, 1});
  }

  // The first of the two places where an attention drops values: its weights.
  struct Attention {
    std::int64_t layer = 0;
    std::uint32_t place = 0;
    std::string name;
  };
  // `hidden`: keys, or pairs of a query and a key, that are not seen.
  at::Tensor attention(const at::Tensor& x, const at::Tensor& read, const Attention& one,
                       const at::Tensor& bias, const at::Tensor& hidden) const {
    const at::Tensor q = linear(x, one.name + ".q"), k = linear(read, one.name + ".k"),
                     v = linear(read, one.name + ".v");
    const std::int64_t width = q.size(1) / shape_.heads;
    std::vector<at::Tensor> mixed;
    for (std::int64_t i = 0; i < shape_.heads; ++i) {
      const auto part = [&](const at::Tensor& all) { return all.narrow(1, i * width, width); };
      at::Tensor scores = part(q).matmul(part(k).t());
      if (bias.defined()) scores = scores + bias[i];
      const at::Tensor weights = scores.masked_fill(hidden, -INFINITY).softmax(-1);
      mixed.push_back(dropped(weights, one.layer, one.place, i * weights.numel()).matmul(part(v)));
    }
    return dropped(linear(at::cat(mixed, 1), one.name + ".o"), one.layer, one.place + 1);
  }

  const ModelShape& shape_;
  const PlainTensors& w_;
  PlainDrop drop_;
};

}  // namespace

PlainT5 plain_t5(const ModelShape& shape, std::span<const float> parameters,
                 const TokenBatch& batch, const std::vector<std::int64_t>& seen) {
  std::vector<float> own(parameters.begin(), parameters.end());
  const FlatLayout layout = shape.flat_layout();
  const PlainTensors w = plain_tensors(layout, own);
  at::Tensor loss = at::zeros({});
  PlainT5 plain;
  for (std::int64_t row = 0; row < batch.batch; ++row) {
    const auto numbers = [row](std::span<const std::int32_t> all, std::int64_t columns) {
      return numbers_of(
          all.subspan(static_cast<std::size_t>(row * columns), static_cast<std::size_t>(columns)));
    };
    const at::Tensor logits =
        WrittenT5(shape, w, plain_drop(batch, row))
            .logits(numbers(batch.inputs, batch.sequence),
                    numbers(batch.decoder_inputs, batch.target_sequence),
                    seen.empty() ? batch.sequence : seen[static_cast<std::size_t>(row)]);
    loss = loss + loss_sum(logits, numbers(batch.targets, batch.target_sequence));
    const at::Tensor values = logits.detach().contiguous();
    plain.logits.insert(plain.logits.end(), values.const_data_ptr<float>(),
                        values.const_data_ptr<float>() + values.numel());
  }
  loss = loss / static_cast<double>(std::ranges::count_if(
                    batch.targets, [](std::int32_t target) { return target >= 0; }));
  loss.backward();
  plain.loss = loss.item<double>();
  plain.gradient = flat_gradients(layout, w);
  return plain;
}

}  // namespace sluice::model
