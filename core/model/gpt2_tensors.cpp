// The list of GPT-2's tensors in flat order, with Hugging Face's names and the initial values of
// the GPT-2 paper and code: weights N(0, 0.02); the two projections that write into the residual
// stream divided by sqrt(2 * layers), so that the stream's variance does not grow with depth;
// positions N(0, 0.01) as in OpenAI's own code (Hugging Face uses 0.02: either trains, and the
// smaller lets the tokens dominate at the start); LayerNorm one and zero; biases zero.

#include <cmath>
#include <utility>

#include "core/model/model_shape.h"

namespace sluice::model {
namespace {

constexpr double kWeightStd = 0.02;
constexpr double kPositionStd = 0.01;

class LayoutBuilder {
 public:
  void begin_layer(std::string name) {
    layout_.layers.push_back({std::move(name), layout_.parameter_count, 0});
  }

  void normal(std::string name, std::vector<std::int64_t> shape, double std_dev) {
    add(std::move(name), std::move(shape), TensorInfo::Init::normal, std_dev);
  }
  void ones(std::string name, std::int64_t count) {
    add(std::move(name), {count}, TensorInfo::Init::ones, 0);
  }
  void zeros(std::string name, std::int64_t count) {
    add(std::move(name), {count}, TensorInfo::Init::zeros, 0);
  }

  // Hugging Face's Conv1D: the weight is [in, out], so y = x W + b.
  void conv1d(const std::string& name, std::int64_t in, std::int64_t out, double std_dev) {
    normal(name + ".weight", {in, out}, std_dev);
    zeros(name + ".bias", out);
  }
  void layer_norm(const std::string& name, std::int64_t width) {
    ones(name + ".weight", width);
    zeros(name + ".bias", width);
  }

  FlatLayout take() { return std::move(layout_); }

 private:
  void add(std::string name, std::vector<std::int64_t> shape, TensorInfo::Init init,
           double std_dev) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    const LayerId layer{layout_.layer_count() - 1};
    layout_.tensors.push_back(
        {std::move(name), std::move(shape), layout_.parameter_count, count, layer, init, std_dev});
    layout_.layers.back().count += count;
    layout_.parameter_count += count;
  }

  FlatLayout layout_;
};

}  // namespace

FlatLayout ModelShape::flat_layout() const {
  const double residual_std = kWeightStd / std::sqrt(2.0 * static_cast<double>(layers));
  LayoutBuilder builder;
  builder.begin_layer("embedding");
  builder.normal("wte.weight", {vocabulary, hidden}, kWeightStd);
  builder.normal("wpe.weight", {sequence, hidden}, kPositionStd);
  for (std::int64_t block = 0; block < layers; ++block) {
    const std::string h = fmt::format("h.{}", block);
    builder.begin_layer(h);
    builder.layer_norm(h + ".ln_1", hidden);
    builder.conv1d(h + ".attn.c_attn", hidden, 3 * hidden, kWeightStd);
    builder.conv1d(h + ".attn.c_proj", hidden, hidden, residual_std);
    builder.layer_norm(h + ".ln_2", hidden);
    builder.conv1d(h + ".mlp.c_fc", hidden, 4 * hidden, kWeightStd);
    builder.conv1d(h + ".mlp.c_proj", 4 * hidden, hidden, residual_std);
  }
  builder.begin_layer("head");
  builder.layer_norm("ln_f", hidden);
  return builder.take();
}

}  // namespace sluice::model
