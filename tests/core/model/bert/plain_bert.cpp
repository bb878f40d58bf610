#include "tests/core/model/bert/plain_bert.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/core/model/plain_dropout.h"
#include "tests/core/model/plain_model.h"

namespace sluice::model {
namespace {

class Plain {
 public:
  Plain(const ModelShape& shape, const PlainTensors& w, const PlainDrop& drop)
      : shape_(shape), w_(w), drop_(drop) {}

  // The logits of one row.
  at::Tensor logits(const at::Tensor& tokens, const at::Tensor& segments, std::int64_t seen) const {
    const at::Tensor positions = at::arange(tokens.size(0));
    at::Tensor x = w_.at("embeddings.word_embeddings.weight").index({tokens}) +
                   w_.at("embeddings.position_embeddings.weight").index({positions}) +
                   w_.at("embeddings.token_type_embeddings.weight").index({segments});
    x = drop_(normed(x, "embeddings.LayerNorm"), 0, 0, shape_.dropout.rows);
    for (std::int64_t i = 0; i < shape_.layers; ++i)
      x = block(x, i, "encoder.layer." + std::to_string(i) + ".", seen);
    if (shape_.classes > 0) {
      const at::Tensor pooled = linear(x.narrow(0, 0, 1), "pooler.dense").tanh();
      return linear(drop_(pooled, shape_.layers + 1, 0, shape_.dropout.output), "classifier");
    }
    const std::string head = "cls.predictions.";
    x = normed(gelu(linear(x, head + "transform.dense")), head + "transform.LayerNorm");
    return x.matmul(w_.at("embeddings.word_embeddings.weight").t()) + w_.at(head + "bias");
  }

 private:
  at::Tensor normed(const at::Tensor& x, const std::string& name) const {
    const at::Tensor away = x - x.mean(-1, true);
    return away / ((away * away).mean(-1, true) + shape_.norm_eps).sqrt() *
               w_.at(name + ".weight") +
           w_.at(name + ".bias");
  }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    return x.matmul(w_.at(name + ".weight").t()) + w_.at(name + ".bias");
  }
  static at::Tensor gelu(const at::Tensor& x) { return x * 0.5 * (1 + (x / std::sqrt(2.0)).erf()); }

  at::Tensor block(const at::Tensor& x, std::int64_t i, const std::string& prefix,
                   std::int64_t seen) const {
    const std::string of_attention = prefix + "attention.output.";
    const double share = shape_.dropout.rows;
    const at::Tensor mixed = linear(attention(x, i, prefix, seen), of_attention + "dense");
    const at::Tensor middle = normed(x + drop_(mixed, i + 1, 1, share), of_attention + "LayerNorm");
    const at::Tensor wide = gelu(linear(middle, prefix + "intermediate.dense"));
    return normed(middle + drop_(linear(wide, prefix + "output.dense"), i + 1, 2, share),
                  prefix + "output.LayerNorm");
  }
  at::Tensor attention(const at::Tensor& x, std::int64_t layer, const std::string& prefix,
                       std::int64_t seen) const {
    const std::string self = prefix + "attention.self.";
    const at::Tensor q = linear(x, self + "query"), k = linear(x, self + "key"),
                     v = linear(x, self + "value");
    const std::int64_t width = shape_.hidden / shape_.heads;
    const at::Tensor hidden = at::arange(x.size(0)) >= seen;
    std::vector<at::Tensor> mixed;
    for (std::int64_t i = 0; i < shape_.heads; ++i) {
      const auto part = [&](const at::Tensor& all) { return all.narrow(1, i * width, width); };
      const at::Tensor scores = part(q).matmul(part(k).t()) / std::sqrt(static_cast<double>(width));
      const at::Tensor weights = scores.masked_fill(hidden, -INFINITY).softmax(-1);
      mixed.push_back(drop_(weights, layer + 1, 0, shape_.dropout.attention, i * weights.numel())
                          .matmul(part(v)));
    }
    return at::cat(mixed, 1);
  }

  const ModelShape& shape_;
  const PlainTensors& w_;
  PlainDrop drop_;
};

}  // namespace

PlainBert plain_bert(const ModelShape& shape, std::span<const float> parameters,
                     const TokenBatch& batch, const PlainSights& sights) {
  std::vector<float> own(parameters.begin(), parameters.end());
  std::vector<std::int32_t> segments = sights.segments;
  segments.resize(batch.inputs.size());
  const FlatLayout layout = shape.flat_layout();
  const PlainTensors w = plain_tensors(layout, own);
  at::Tensor loss = at::zeros({});
  PlainBert plain;
  for (std::int64_t row = 0; row < batch.batch; ++row) {
    const auto first = static_cast<std::size_t>(row * batch.sequence);
    const auto count = static_cast<std::size_t>(batch.sequence);
    const at::Tensor logits =
        Plain(shape, w, plain_drop(batch, row))
            .logits(
                numbers_of(batch.inputs.subspan(first, count)),
                numbers_of(std::span(segments).subspan(first, count)),
                sights.seen.empty() ? batch.sequence : sights.seen[static_cast<std::size_t>(row)]);
    const auto targets = static_cast<std::size_t>(batch.target_columns());
    loss = loss + loss_sum(logits, numbers_of(batch.targets.subspan(
                                       static_cast<std::size_t>(row) * targets, targets)));
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
