#include "core/model/gpt2/gpt2.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>

#include "core/model/torch/attention.h"
#include "core/model/torch/linear.h"
#include "core/model/torch/position_table.h"

namespace sluice::model {
namespace {

constexpr double kLayerNormEps = 1e-5;

// Where a block drops values.
enum : std::uint32_t { kDropWeights, kDropAttended, kDropWidened };

// Weight and bias are applied outside layer_norm: its own backward sums their gradients in 16 bits
// (3 % off at 1024 tokens, 8 % at 8192), addcmul's in fp32.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::addcmul(bias, at::layer_norm(x, {x.size(1)}, {}, {}, kLayerNormEps), weight);
}

// Token rows plus position rows.
at::Tensor embed(const at::Tensor& tokens, const LayerViews& w, const TokenPlaces& places,
                 const ModelShape& /*shape*/) {
  at::Tensor x = w["wte.weight"].index_select(0, tokens);
  add_positions(x, w["wpe.weight"], places);
  return x;
}

void embed_backward(const at::Tensor& gradient, const LayerViews& w, const TokenPlaces& places,
                    GradientWriter& writer) {
  const at::Tensor positions = writer.next(w["wpe.weight"].sizes());  // [sequence, hidden]
  const at::Tensor used = positions.narrow(0, 0, places.window.sequence);
  const at::Tensor sum = sum_by_position(gradient, places);
  if (writer.adds()) {
    used.add_(sum);
  } else {
    positions.zero_();
    used.copy_(sum);
  }
}

// Hugging Face's Conv1D.
at::Tensor conv1d(const at::Tensor& x, const LayerViews& w, const std::string& name) {
  return linear(x, w, name, MatrixOrder::in_out);
}

at::Tensor attended(const at::Tensor& qkv, const LayerContext& context) {
  const std::int64_t heads = context.shape.heads;
  const DropPlace weights = context.drop_place(context.shape.dropout.attention, kDropWeights);
  if (!context.dropout.drops(weights)) {
    return attention(qkv, context.window, heads, context.documents);
  }
  const std::vector<at::Tensor> parts = qkv.split(qkv.size(1) / 3, 1);
  return dropped_attention(parts[0], parts[1], parts[2], context.window, heads, Sees::back,
                           context.documents, context.dropout, weights);
}

// c_attn's columns are query, key and value.
at::Tensor block(const at::Tensor& x, const LayerViews& w, const LayerContext& context) {
  const at::Tensor qkv = conv1d(layer_norm(x, w["ln_1.weight"], w["ln_1.bias"]), w, "attn.c_attn");
  const at::Tensor mixed = attended(qkv, context);
  const at::Tensor middle = x + context.dropped(conv1d(mixed, w, "attn.c_proj"), kDropAttended);
  const at::Tensor widened =
      at::gelu(conv1d(layer_norm(middle, w["ln_2.weight"], w["ln_2.bias"]), w, "mlp.c_fc"), "tanh");
  return middle + context.dropped(conv1d(widened, w, "mlp.c_proj"), kDropWidened);
}

at::Tensor head(const at::Tensor& x, const LayerViews& w, const ModelShape& /*shape*/) {
  return layer_norm(x, w["ln_f.weight"], w["ln_f.bias"]);
}

}  // namespace

const TorchArchitecture kTorchGpt2 = {.token_table = "wte.weight",
                                      .embed = embed,
                                      .embed_backward = embed_backward,
                                      .block = block,
                                      .head = head};

}  // namespace sluice::model
