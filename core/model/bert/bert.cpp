#include "core/model/bert/bert.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/model/torch/attention.h"
#include "core/model/torch/autograd.h"
#include "core/model/torch/linear.h"
#include "core/model/torch/position_table.h"

namespace sluice::model {
namespace {

// Where a block drops values.
enum : std::uint32_t { kDropWeights, kDropAttended, kDropWidened };

// Weight and bias are applied outside layer_norm, as GPT-2's are: its own backward sums their
// gradients in 16 bits.
at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const ModelShape& shape) {
  return at::addcmul(bias, at::layer_norm(x, {x.size(1)}, {}, {}, shape.norm_eps), weight);
}

at::Tensor layer_norm(const at::Tensor& x, const LayerViews& w, const std::string& name,
                      const ModelShape& shape) {
  return normed(x, w[name + ".weight"], w[name + ".bias"], shape);
}

// Token rows plus position rows plus the rows of their segments.
at::Tensor looked_up(const at::Tensor& tokens, const LayerViews& w, const TokenPlaces& places) {
  at::Tensor x = w["word_embeddings.weight"].index_select(0, tokens);
  const at::Tensor& of_segments = w["token_type_embeddings.weight"];
  x.add_(places.segments.defined() ? of_segments.index_select(0, places.segments) : of_segments[0]);
  add_positions(x, w["position_embeddings.weight"], places);
  return x;
}

at::Tensor embed(const at::Tensor& tokens, const LayerViews& w, const TokenPlaces& places,
                 const ModelShape& shape) {
  return layer_norm(looked_up(tokens, w, places), w, "LayerNorm", shape);
}

// The sum is looked up once more: it is cheaper than kept.
std::vector<at::Tensor> embed_norm_backward(const at::Tensor& gradient, const at::Tensor& tokens,
                                            const LayerViews& w, const TokenPlaces& places,
                                            const ModelShape& shape) {
  const at::Tensor sum = looked_up(tokens, w, places).set_requires_grad(true);
  const at::Tensor weight = w["LayerNorm.weight"].detach().set_requires_grad(true);
  const at::Tensor bias = w["LayerNorm.bias"].detach().set_requires_grad(true);
  const at::AutoGradMode watch(true);
  return differentiate(normed(sum, weight, bias, shape), {sum, weight, bias}, gradient);
}

// Rows of a table's gradient of which only the first ones were used.
void put_first_rows(const at::Tensor& sums, const at::Tensor& table, GradientWriter& writer) {
  const at::Tensor target = writer.next(table.sizes());
  const at::Tensor used = target.narrow(0, 0, sums.size(0));
  if (writer.adds()) {
    used.add_(sums);
  } else {
    target.zero_();
    used.copy_(sums);
  }
}

// The rows of a pair's two segments, in fp32.
at::Tensor sum_by_segment(const at::Tensor& gradient, const at::Tensor& segments,
                          std::int64_t segment_count) {
  std::vector<at::Tensor> sums;
  for (std::int64_t segment = 0; segment < std::min<std::int64_t>(2, segment_count); ++segment) {
    const at::Tensor rows = gradient * segments.eq(segment).unsqueeze(1);
    sums.push_back(rows.sum({0}, /*keepdim=*/true, at::kFloat));
  }
  return at::cat(sums);
}

void embed_backward(const at::Tensor& gradient, const LayerViews& w, const TokenPlaces& places,
                    GradientWriter& writer) {
  const at::Tensor of_positions = sum_by_position(gradient, places);
  put_first_rows(of_positions, w["position_embeddings.weight"], writer);
  const at::Tensor& table = w["token_type_embeddings.weight"];
  put_first_rows(places.segments.defined()
                     ? sum_by_segment(gradient, places.segments, table.size(0))
                     : of_positions.sum(at::IntArrayRef{0}, /*keepdim=*/true),
                 table, writer);
}

at::Tensor attended(const at::Tensor& x, const LayerViews& w, const LayerContext& context) {
  const std::int64_t heads = context.shape.heads;
  const at::Tensor query = linear(x, w, "self.query");
  const at::Tensor key = linear(x, w, "self.key");
  const at::Tensor value = linear(x, w, "self.value");
  const DropPlace weights = context.drop_place(context.shape.dropout.attention, kDropWeights);
  const at::Tensor mixed =
      context.dropout.drops(weights)
          ? dropped_attention(query, key, value, context.window, heads, Sees::all,
                              context.documents, context.dropout, weights)
          : grouped_attention(query, key, value, context.window, heads, heads, {}, Sees::all,
                              context.documents);
  return context.dropped(linear(mixed, w, "attention.output.dense"), kDropAttended);
}

at::Tensor block(const at::Tensor& x, const LayerViews& w, const LayerContext& context) {
  const ModelShape& shape = context.shape;
  const at::Tensor middle =
      layer_norm(x + attended(x, w, context), w, "attention.output.LayerNorm", shape);
  // By more of the name: attention's output has the same end.
  const std::string output = "layer." + std::to_string(context.block) + ".output";
  const at::Tensor widened = at::gelu(linear(middle, w, "intermediate.dense"));
  const at::Tensor narrowed = context.dropped(linear(widened, w, output + ".dense"), kDropWidened);
  return layer_norm(middle + narrowed, w, output + ".LayerNorm", shape);
}

at::Tensor head(const at::Tensor& x, const LayerViews& w, const ModelShape& shape) {
  return layer_norm(at::gelu(linear(x, w, "transform.dense")), w, "transform.LayerNorm", shape);
}

at::Tensor pooled(const at::Tensor& first_tokens, const LayerViews& w,
                  const ModelShape& /*shape*/) {
  return linear(first_tokens, w, "pooler.dense").tanh();
}

TorchArchitecture with_classifier(TorchArchitecture bert) {
  bert.output_table = "classifier.weight";
  bert.output_bias = "classifier.bias";
  bert.head = pooled;
  return bert;
}

}  // namespace

const TorchArchitecture kTorchBert = {.token_table = "word_embeddings.weight",
                                      .output_bias = "cls.predictions.bias",
                                      .embed = embed,
                                      .embed_norm_backward = embed_norm_backward,
                                      .embed_backward = embed_backward,
                                      .block = block,
                                      .head = head};

const TorchArchitecture kTorchBertClassifier = with_classifier(kTorchBert);

}  // namespace sluice::model
