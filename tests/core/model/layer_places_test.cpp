// Which layer is what, where tables are whole and where they are cut.

#include "core/model/layer_places.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/id_vector.h"
#include "core/model/architecture.h"
#include "core/model/flop.h"
#include "core/model/lora.h"

namespace sluice::model {
namespace {

ModelShape wide_llama() {
  ModelShape shape{"wide", 3, 48, 4, 24, 48'000, Family::llama};
  shape.kv_heads = 2;
  shape.ffn = 80;
  return shape;
}

TEST_CASE("tables that are no wider than a block, or both at once, stay whole") {
  ModelShape narrow = wide_llama();
  narrow.vocabulary = 97;
  ModelShape tied = wide_llama();
  tied.tied_tables = true;
  const ModelShape gpt2{"gpt2", 3, 48, 4, 24, 48'000};
  for (const ModelShape& shape : {narrow, tied, gpt2}) {
    const LayerPlaces places = layer_places(shape);
    CHECK_FALSE(places.are_tables_cut());
    CHECK(places.count() == 5);
    CHECK(index_of(places.head()) == 4);
    CHECK(places.has_logits(places.head()));
    CHECK(logit_count(shape, places.head()) == shape.vocabulary);
    CHECK(logit_count(shape, places.first_block()) == 0);
    const FlatLayout layout = shape.flat_layout();
    CHECK(layout.layers.front().name == "embedding");
    CHECK(layout.stays(LayerId{0}));
    CHECK(layout.staying_elements() == layout.layers.front().count);
  }
}

// Layers cover the flat array, one behind the other, and have each tensor's elements once.
void check_covered(const FlatLayout& layout) {
  std::int64_t end = 0;
  for (const LayerRange& layer : layout.layers) {
    CHECK(layer.first == end);
    end += layer.count;
  }
  CHECK(end == layout.parameter_count);
  for (const TensorInfo& tensor : layout.tensors) {
    std::int64_t count = 0;
    for (const LayerRange& layer : layout.layers) count += elements_within(tensor, layer);
    CHECK(count == tensor.count);
    CHECK(elements_within(tensor, layout.layer(tensor.layer)) > 0);
  }
}

TEST_CASE("wide tables of their own are pieces of rows, each a layer") {
  const ModelShape shape = wide_llama();
  const LayerPlaces places = layer_places(shape);
  CHECK(places.embeddings == 3);
  CHECK(places.outputs == 3);
  CHECK(places.count() == 10);
  CHECK(places.piece_rows % 64 == 0);
  const FlatLayout layout = shape.flat_layout();
  std::vector<std::string> names;
  for (const LayerRange& layer : layout.layers) names.push_back(layer.name);
  CHECK(names == std::vector<std::string>{"embedding.0", "embedding.1", "embedding.2", "layers.0",
                                          "layers.1", "layers.2", "head", "output.0", "output.1",
                                          "output.2"});
  check_covered(layout);
  CHECK_FALSE(layout.stays(LayerId{0}));
  CHECK(layout.staying_elements() == 0);
  CHECK(layout.largest_passing() == places.piece_rows * shape.hidden);
  CHECK(layout.layer(places.head()).count == shape.hidden);

  std::int64_t logits = 0;
  for (const LayerId layer : all_ids<LayerId>(places.count())) logits += logit_count(shape, layer);
  CHECK(logits == shape.vocabulary);
  CHECK(places.first_row(places.last()) + places.row_count(places.last()) == shape.vocabulary);
}

TEST_CASE("a cut changes neither the flat array nor a step's FLOP") {
  ModelShape shape = wide_llama();
  const FlatLayout cut = shape.flat_layout();
  double flop = 0;
  const LayerPlaces places = layer_places(shape);
  for (const LayerId layer : all_ids<LayerId>(places.count()))
    flop += forward_flop(shape, layer, 2, 16);
  double of_blocks = 0;
  for (LayerId layer = places.first_block(); layer < places.head();
       layer = LayerId{index_of(layer) + 1}) {
    of_blocks += forward_flop(shape, layer, 2, 16);
  }
  CHECK(flop - of_blocks == 2.0 * 2 * 16 * 48 * 48'000);

  shape.tied_tables = true;  // the same tensors, but for the last
  const FlatLayout whole = shape.flat_layout();
  REQUIRE(whole.tensors.size() + 1 == cut.tensors.size());
  for (std::size_t i = 0; i < whole.tensors.size(); ++i) {
    CHECK(whole.tensors[i].name == cut.tensors[i].name);
    CHECK(whole.tensors[i].first == cut.tensors[i].first);
    CHECK(whole.tensors[i].shape == cut.tensors[i].shape);
  }
}

TEST_CASE("no layer of Qwen3-8B or Llama-3.1 is larger than a block") {
  for (const char* name : {"qwen3-8b", "qwen3-14b", "llama-3.1-8b", "llama-3.1-70b"}) {
    INFO(name);
    const ModelShape shape =
        load_model_shape(std::string(SLUICE_SOURCE_DIR) + "/sample_models/models/" + name + ".toml")
            .value();
    const LayerPlaces places = layer_places(shape);
    const FlatLayout layout = shape.flat_layout();
    CHECK(places.are_tables_cut());
    // Rows are rounded up to 64.
    CHECK(layout.largest_layer_elements() <=
          layout.layer(places.first_block()).count + 64 * shape.hidden);
    check_covered(layout);
  }
}

TEST_CASE("adapters lie in the layers of the model whose tables are cut") {
  const ModelShape shape = with_adapters(wide_llama(), {.rank = 2, .alpha = 4}).value();
  const FlatLayout trained = shape.flat_layout(), base = shape.base_layout();
  REQUIRE(trained.layer_count() == base.layer_count());
  for (std::int32_t l = 0; l < base.layer_count(); ++l)
    CHECK(trained.layer(LayerId{l}).name == base.layer(LayerId{l}).name);
  CHECK(trained.first_stays == base.first_stays);
  CHECK(first_trained_layer(shape) == layer_places(shape).first_block());
}

}  // namespace
}  // namespace sluice::model
