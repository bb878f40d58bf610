// GPT-2's tensors and the initial values of its paper and code: weights N(0, 0.02); the two
// projections that write into the residual stream divided by sqrt(2 * layers), so that the stream's
// variance does not grow with depth; positions N(0, 0.01) as in OpenAI's own code (Hugging Face
// uses 0.02: either trains, and the smaller lets the tokens dominate at the start); LayerNorm one
// and zero; biases zero.

#include <cmath>

#include "core/model/family_layouts.h"
#include "core/model/layout_builder.h"

namespace sluice::model {
namespace {

constexpr double kPositionStd = 0.01;

// Hugging Face's Conv1D: the weight is [in, out], so y = x W + b.
void conv1d(LayoutBuilder& builder, const std::string& name, std::int64_t in, std::int64_t out,
            double std_dev = kWeightStd) {
  builder.normal(name + ".weight", {in, out}, std_dev);
  builder.zeros(name + ".bias", out);
}

}  // namespace

FlatLayout gpt2_layout(const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  const double residual_std = kWeightStd / std::sqrt(2.0 * static_cast<double>(shape.layers));
  LayoutBuilder builder;
  builder.begin_layer("embedding");
  builder.normal("wte.weight", {shape.vocabulary, hidden});
  builder.normal("wpe.weight", {shape.sequence, hidden}, kPositionStd);
  for (std::int64_t block = 0; block < shape.layers; ++block) {
    const std::string h = fmt::format("h.{}", block);
    builder.begin_layer(h);
    builder.layer_norm(h + ".ln_1", hidden);
    conv1d(builder, h + ".attn.c_attn", hidden, 3 * hidden);
    conv1d(builder, h + ".attn.c_proj", hidden, hidden, residual_std);
    builder.layer_norm(h + ".ln_2", hidden);
    conv1d(builder, h + ".mlp.c_fc", hidden, 4 * hidden);
    conv1d(builder, h + ".mlp.c_proj", 4 * hidden, hidden, residual_std);
  }
  builder.begin_layer("head");
  builder.layer_norm("ln_f", hidden);
  return builder.take();
}

}  // namespace sluice::model
