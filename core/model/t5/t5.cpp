#include "core/model/t5/t5.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>

#include <cmath>
#include <string>

#include "core/model/torch/biased_attention.h"
#include "core/model/torch/linear.h"
#include "core/model/torch/rms_norm.h"

namespace sluice::model {
namespace {

// Where a block drops values.
enum : std::uint32_t {
  kDropWeights,
  kDropAttended,
  kDropSourceWeights,
  kDropAttendedSource,
  kDropWidened,
  kDropNarrowed
};

at::Tensor embed(const at::Tensor& tokens, const LayerViews& w, const TokenPlaces& /*places*/,
                 const ModelShape& /*shape*/) {
  return w["shared.weight"].index_select(0, tokens);
}

at::Tensor normed(const at::Tensor& x, const LayerViews& w, const std::string& sublayer,
                  const ModelShape& shape) {
  return rms_norm(x, w[sublayer + ".layer_norm.weight"], shape.norm_eps);
}

at::Tensor attended_to_itself(const at::Tensor& x, const LayerViews& w,
                              const LayerContext& context) {
  const std::int64_t length = context.window.sequence;
  const at::Tensor inner = normed(x, w, "layer.0", context.shape);
  const at::Tensor query = linear(inner, w, "SelfAttention.q");
  const at::Tensor key = linear(inner, w, "SelfAttention.k");
  const at::Tensor value = linear(inner, w, "SelfAttention.v");
  const at::Tensor mixed = biased_attention(
      query, key, value, {context.window.batch, length, length, context.shape.heads}, context.bias,
      context.dropout, context.drop_place(context.shape.dropout.attention, kDropWeights));
  return context.dropped(linear(mixed, w, "SelfAttention.o"), kDropAttended);
}

at::Tensor attended_to_source(const at::Tensor& x, const LayerViews& w,
                              const LayerContext& context) {
  const at::Tensor& encoded = *context.encoded;
  const at::Tensor query = linear(normed(x, w, "layer.1", context.shape), w, "EncDecAttention.q");
  const at::Tensor key = linear(encoded, w, "EncDecAttention.k");
  const at::Tensor value = linear(encoded, w, "EncDecAttention.v");
  const std::int64_t batch = context.window.batch;
  const at::Tensor mixed = biased_attention(
      query, key, value,
      {batch, context.window.sequence, encoded.size(0) / batch, context.shape.heads}, nullptr,
      context.dropout, context.drop_place(context.shape.dropout.attention, kDropSourceWeights));
  return context.dropped(linear(mixed, w, "EncDecAttention.o"), kDropAttendedSource);
}

at::Tensor widened(const at::Tensor& x, const LayerViews& w, const ModelShape& shape) {
  if (!shape.stacks.gated_mlp) return at::relu(linear(x, w, "DenseReluDense.wi"));
  const at::Tensor gate = at::gelu(linear(x, w, "DenseReluDense.wi_0"), "tanh");
  return gate * linear(x, w, "DenseReluDense.wi_1");
}

at::Tensor through_mlp(const at::Tensor& x, const LayerViews& w, const std::string& sublayer,
                       const LayerContext& context) {
  const ModelShape& shape = context.shape;
  const at::Tensor wide =
      context.dropped(widened(normed(x, w, sublayer, shape), w, shape), kDropWidened);
  return x + context.dropped(linear(wide, w, "DenseReluDense.wo"), kDropNarrowed);
}

at::Tensor encoder_block(const at::Tensor& x, const LayerViews& w, const LayerContext& context) {
  return through_mlp(x + attended_to_itself(x, w, context), w, "layer.1", context);
}

at::Tensor decoder_block(const at::Tensor& x, const LayerViews& w, const LayerContext& context) {
  const at::Tensor behind = x + attended_to_itself(x, w, context);
  const at::Tensor middle = behind + attended_to_source(behind, w, context);
  return through_mlp(middle, w, "layer.2", context);
}

at::Tensor head(const at::Tensor& x, const LayerViews& w, const ModelShape& shape) {
  const at::Tensor rows = rms_norm(x, w["final_layer_norm.weight"], shape.norm_eps);
  return shape.tied_tables ? rows * (1 / std::sqrt(static_cast<double>(shape.hidden))) : rows;
}

}  // namespace

const TorchArchitecture kTorchT5 = {.token_table = "shared.weight",
                                    .output_table = "lm_head.weight",
                                    .embed = embed,
                                    .block = encoder_block,
                                    .decoder_block = decoder_block,
                                    .head = head};

}  // namespace sluice::model
