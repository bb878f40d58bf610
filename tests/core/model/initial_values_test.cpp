#include <catch2/catch.hpp>
#include <cmath>

#include "core/model/flat_layout.h"
#include "core/model/model_shape.h"

namespace sluice::model {
namespace {

const ModelShape kSmallGpt2{"small", 2, 64, 2, 101, 301};

std::vector<float> all_values(const FlatLayout& layout, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(layout.parameter_count));
  fill_initial(layout, seed, 0, values);
  return values;
}

const TensorInfo& find(const FlatLayout& layout, const std::string& name) {
  for (const TensorInfo& tensor : layout.tensors) {
    if (tensor.name == name) return tensor;
  }
  FAIL("no tensor " << name);
  return layout.tensors[0];
}

TEST_CASE("any part can be made anywhere: pieces of odd sizes give the same values") {
  const FlatLayout layout = kSmallGpt2.flat_layout();
  const std::vector<float> whole = all_values(layout, 9);
  std::vector<float> pieced(whole.size());
  std::int64_t first = 0;
  for (std::int64_t size = 1; first < layout.parameter_count; size = size * 3 % 1009 + 1) {
    const std::int64_t count = std::min(size, layout.parameter_count - first);
    fill_initial(layout, 9, first, std::span(pieced).subspan(first, count));
    first += count;
  }
  CHECK(pieced == whole);
}

TEST_CASE("an empty part is nothing, also at the end") {
  const FlatLayout layout = kSmallGpt2.flat_layout();
  std::vector<float> untouched = {7};
  fill_initial(layout, 0, 0, std::span(untouched).first(0));
  fill_initial(layout, 0, layout.parameter_count, std::span(untouched).first(0));
  CHECK(untouched.front() == 7);
}

TEST_CASE("LayerNorm begins as one and zero, biases as zero") {
  const FlatLayout layout = kSmallGpt2.flat_layout();
  const std::vector<float> values = all_values(layout, 9);
  int ones = 0;
  int zeros = 0;
  for (const TensorInfo& tensor : layout.tensors) {
    const bool is_norm = tensor.name.find("ln_") != std::string::npos;
    if (!is_norm && tensor.name.ends_with(".weight")) continue;
    const float expected = is_norm && tensor.name.ends_with(".weight") ? 1.0f : 0.0f;
    for (std::int64_t i = 0; i < tensor.count; ++i) REQUIRE(values[tensor.first + i] == expected);
    (expected == 1 ? ones : zeros) += 1;
  }
  const auto layers = static_cast<int>(kSmallGpt2.layers);
  CHECK(ones == 2 * layers + 1);
  CHECK(zeros == 6 * layers + 1);
}

TEST_CASE("weights are normal with the standard deviation that GPT-2 gives them") {
  const FlatLayout layout = kSmallGpt2.flat_layout();
  const std::vector<float> values = all_values(layout, 9);
  const auto check = [&](const std::string& name, double std_dev) {
    const TensorInfo& tensor = find(layout, name);
    const auto n = static_cast<double>(tensor.count);
    double sum = 0, squares = 0, inside = 0;
    for (std::int64_t i = 0; i < tensor.count; ++i) {
      const double value = values[tensor.first + i];
      sum += value;
      squares += value * value;
      inside += std::abs(value) < std_dev ? 1 : 0;
    }
    INFO(name);
    // Six standard errors of each estimate.
    CHECK(std::abs(sum / n) < 6 * std_dev / std::sqrt(n));
    CHECK(std::abs(std::sqrt(squares / n) / std_dev - 1) < 6 / std::sqrt(2 * n));
    CHECK(std::abs(inside / n - 0.6827) < 6 * 0.466 / std::sqrt(n));
  };
  check("wte.weight", 0.02);
  check("wpe.weight", 0.01);
  check("h.0.attn.c_attn.weight", 0.02);
  check("h.1.mlp.c_fc.weight", 0.02);
  check("h.0.attn.c_proj.weight", 0.02 / 2);  // sqrt(2 * 2 layers) = 2
  check("h.1.mlp.c_proj.weight", 0.02 / 2);
}

TEST_CASE("seed and tensor choose the values") {
  const FlatLayout layout = kSmallGpt2.flat_layout();
  const std::vector<float> a = all_values(layout, 1);
  CHECK(a == all_values(layout, 1));
  CHECK(a != all_values(layout, 2));
  const TensorInfo& first = find(layout, "h.0.mlp.c_fc.weight");
  const TensorInfo& second = find(layout, "h.1.mlp.c_fc.weight");
  CHECK_FALSE(std::equal(a.begin() + first.first, a.begin() + first.first + first.count,
                         a.begin() + second.first));
}

}  // namespace
}  // namespace sluice::model
