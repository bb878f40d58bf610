#include "core/model/gpt2/gpt2.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>

#include <array>

#include "core/model/torch/attention.h"
#include "core/model/torch/products.h"

namespace sluice::model {
namespace {

enum EmbeddingTensor : std::uint8_t {
  kTokenTable,     // [vocabulary, hidden]
  kPositionTable,  // [sequence, hidden]
};
constexpr std::array kEmbeddingNames = {"wte.weight", "wpe.weight"};

enum BlockTensor : std::uint8_t {
  kLn1Weight,
  kLn1Bias,
  kAttentionWeight,  // [hidden, 3 * hidden]: query, key, value
  kAttentionBias,
  kAttentionOutWeight,  // [hidden, hidden]
  kAttentionOutBias,
  kLn2Weight,
  kLn2Bias,
  kMlpWeight,  // [hidden, 4 * hidden]
  kMlpBias,
  kMlpOutWeight,  // [4 * hidden, hidden]
  kMlpOutBias,
};
constexpr std::array kBlockNames = {
    ".ln_1.weight",        ".ln_1.bias",        ".attn.c_attn.weight", ".attn.c_attn.bias",
    ".attn.c_proj.weight", ".attn.c_proj.bias", ".ln_2.weight",        ".ln_2.bias",
    ".mlp.c_fc.weight",    ".mlp.c_fc.bias",    ".mlp.c_proj.weight",  ".mlp.c_proj.bias"};

enum HeadTensor : std::uint8_t { kLnFWeight, kLnFBias };
constexpr std::array kHeadNames = {"ln_f.weight", "ln_f.bias"};

constexpr double kLayerNormEps = 1e-5;

// Weight and bias are applied outside layer_norm: its own backward sums their gradients in 16 bits
// (3 % off at 1024 tokens, 8 % at 8192), addcmul's in fp32.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::addcmul(bias, at::layer_norm(x, {x.size(1)}, {}, {}, kLayerNormEps), weight);
}

// Token rows plus position rows.
at::Tensor embed(const at::Tensor& tokens, LayerViews w, WindowShape window) {
  const std::int64_t hidden = w[kTokenTable].size(1);
  at::Tensor x = w[kTokenTable].index_select(0, tokens);
  x.view({window.batch, window.sequence, hidden})
      .add_(w[kPositionTable].narrow(0, 0, window.sequence));
  return x;
}

void embed_backward(const at::Tensor& gradient, LayerViews w, WindowShape window,
                    GradientWriter& writer) {
  const at::Tensor positions = writer.next(w[kPositionTable].sizes());
  const at::Tensor used = positions.narrow(0, 0, window.sequence);
  const at::Tensor sum = gradient.view({window.batch, window.sequence, gradient.size(1)})
                             .sum({0}, /*keepdim=*/false, at::kFloat);
  if (writer.adds()) {
    used.add_(sum);
  } else {
    positions.zero_();
    used.copy_(sum);
  }
}

at::Tensor block(const at::Tensor& x, LayerViews w, WindowShape window, const ModelShape& shape) {
  const at::Tensor qkv = product_plus(w[kAttentionBias], layer_norm(x, w[kLn1Weight], w[kLn1Bias]),
                                      w[kAttentionWeight]);
  const at::Tensor attended =
      x + product_plus(w[kAttentionOutBias], attention(qkv, window, shape.heads),
                       w[kAttentionOutWeight]);
  const at::Tensor widened = at::gelu(
      product_plus(w[kMlpBias], layer_norm(attended, w[kLn2Weight], w[kLn2Bias]), w[kMlpWeight]),
      "tanh");
  return attended + product_plus(w[kMlpOutBias], widened, w[kMlpOutWeight]);
}

at::Tensor head(const at::Tensor& x, LayerViews w) {
  return layer_norm(x, w[kLnFWeight], w[kLnFBias]);
}

}  // namespace

const TorchArchitecture kTorchGpt2 = {.embedding_names = kEmbeddingNames,
                                      .block_names = kBlockNames,
                                      .head_names = kHeadNames,
                                      .embed = embed,
                                      .embed_backward = embed_backward,
                                      .block = block,
                                      .head = head};

}  // namespace sluice::model
