#include "core/model/layout_builder.h"

#include <cmath>
#include <utility>

namespace sluice::model {

void LayoutBuilder::begin_layer(std::string name) {
  layout_.layers.push_back({std::move(name), layout_.parameter_count, 0});
}

void LayoutBuilder::normal(std::string name, std::vector<std::int64_t> shape, double std_dev) {
  add(std::move(name), std::move(shape), TensorInfo::Init::normal, std_dev);
}

void LayoutBuilder::ones(std::string name, std::int64_t count) {
  add(std::move(name), {count}, TensorInfo::Init::ones, 0);
}

void LayoutBuilder::zeros(std::string name, std::int64_t count) {
  add(std::move(name), {count}, TensorInfo::Init::zeros, 0);
}

void LayoutBuilder::linear(const std::string& name, std::int64_t in, std::int64_t out) {
  normal(name + ".weight", {out, in});
  zeros(name + ".bias", out);
}

void LayoutBuilder::layer_norm(const std::string& name, std::int64_t width) {
  ones(name + ".weight", width);
  zeros(name + ".bias", width);
}

// Kaiming's uniform values with a = sqrt(5): the bound is sqrt(6 / ((1 + 5) in)).
void LayoutBuilder::adapter(const std::string& name, std::int64_t in, std::int64_t out,
                            std::int64_t rank) {
  add(name + ".lora_A.weight", {rank, in}, TensorInfo::Init::uniform,
      1 / std::sqrt(static_cast<double>(in)));
  add(name + ".lora_B.weight", {out, rank}, TensorInfo::Init::zeros, 0);
}

void LayoutBuilder::add(std::string name, std::vector<std::int64_t> shape, TensorInfo::Init init,
                        double std_dev) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  const LayerId layer{layout_.layer_count() - 1};
  layout_.tensors.push_back(
      {std::move(name), std::move(shape), layout_.parameter_count, count, layer, init, std_dev});
  layout_.layers.back().count += count;
  layout_.parameter_count += count;
}

}  // namespace sluice::model
