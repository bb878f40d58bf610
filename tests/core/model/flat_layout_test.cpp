#include "core/model/flat_layout.h"

#include <catch2/catch.hpp>
#include <set>

#include "core/model/model_shape.h"
#include "tests/core/model/small_shapes.h"

namespace sluice::model {
namespace {

const ModelShape kSmall = small_shapes().front();

TEST_CASE("tensors lie one after the other without gaps, layers too") {
  const auto shape = GENERATE(from_range(small_shapes()));
  const FlatLayout layout = shape.flat_layout();
  INFO(family_name(shape.family));
  REQUIRE(layout.layer_count() == shape.layers + 2);
  std::int64_t next = 0;
  std::set<std::string> names;
  for (const TensorInfo& tensor : layout.tensors) {
    CHECK(tensor.first == next);
    std::int64_t product = 1;
    for (const std::int64_t extent : tensor.shape) product *= extent;
    CHECK(tensor.count == product);
    const LayerRange& layer = layout.layer(tensor.layer);
    CHECK(tensor.first >= layer.first);
    CHECK(tensor.first + tensor.count <= layer.first + layer.count);
    CHECK(names.insert(tensor.name).second);
    next += tensor.count;
  }
  CHECK(next == layout.parameter_count);

  next = 0;
  for (const LayerRange& layer : layout.layers) {
    CHECK(layer.first == next);
    next += layer.count;
  }
  CHECK(next == layout.parameter_count);
}

TEST_CASE("layers and names are GPT-2's") {
  const FlatLayout layout = kSmall.flat_layout();
  REQUIRE(layout.layer_count() == 5);
  CHECK(layout.layers[0].name == "embedding");
  CHECK(layout.layers[0].count == 11 * 8 + 16 * 8);
  CHECK(layout.layers[1].name == "h.0");
  CHECK(layout.layers[1].count == 12 * 8 * 8 + 13 * 8);
  CHECK(layout.layers[4].name == "head");
  CHECK(layout.layers[4].count == 2 * 8);
  CHECK(layout.largest_layer_elements() == 12 * 8 * 8 + 13 * 8);

  const std::vector<std::string> expected = {"wte.weight",
                                             "wpe.weight",
                                             "h.0.ln_1.weight",
                                             "h.0.ln_1.bias",
                                             "h.0.attn.c_attn.weight",
                                             "h.0.attn.c_attn.bias",
                                             "h.0.attn.c_proj.weight",
                                             "h.0.attn.c_proj.bias",
                                             "h.0.ln_2.weight",
                                             "h.0.ln_2.bias",
                                             "h.0.mlp.c_fc.weight",
                                             "h.0.mlp.c_fc.bias",
                                             "h.0.mlp.c_proj.weight",
                                             "h.0.mlp.c_proj.bias",
                                             "h.1.ln_1.weight"};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(layout.tensors[i].name == expected[i]);
  CHECK(layout.tensors.back().name == "ln_f.bias");
  CHECK(layout.tensors[4].shape == std::vector<std::int64_t>{8, 24});
  CHECK(layout.tensors[12].shape == std::vector<std::int64_t>{32, 8});
}

TEST_CASE("the fingerprint changes with every number that changes the layout") {
  const std::uint64_t fingerprint = kSmall.flat_layout().fingerprint();
  CHECK(fingerprint == kSmall.flat_layout().fingerprint());
  std::set<std::uint64_t> all = {fingerprint};
  for (auto field :
       {&ModelShape::layers, &ModelShape::hidden, &ModelShape::sequence, &ModelShape::vocabulary}) {
    ModelShape other = kSmall;
    other.*field += 2;
    CHECK(all.insert(other.flat_layout().fingerprint()).second);
  }
}

TEST_CASE("the fingerprint sees names, and where one shape ends and the next begins") {
  const auto with = [](std::vector<TensorInfo> tensors) {
    FlatLayout layout;
    layout.tensors = std::move(tensors);
    return layout.fingerprint();
  };
  const std::uint64_t one = with({{.name = "a", .shape = {2, 3}}});
  CHECK(one != with({{.name = "b", .shape = {2, 3}}}));
  CHECK(one != with({{.name = "a", .shape = {3, 2}}}));
  CHECK(one != with({{.name = "a", .shape = {2}}, {.name = "", .shape = {3}}}));
}

}  // namespace
}  // namespace sluice::model
