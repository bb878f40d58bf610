#include "core/model/layer_places.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "core/model/architecture.h"

namespace sluice::model {
namespace {

// A smaller piece saves nothing that is worth a layer: 2 MB in 16 bits.
constexpr std::int64_t kLeastPieceElements = std::int64_t{1} << 20;

// Rows of a piece are a multiple, as products like it.
constexpr std::int64_t kRowsTogether = 64;

std::int64_t block_elements(const ModelShape& shape) {
  std::int64_t elements = 0;
  for (const Product& product : architecture_of(shape).block.products(shape))
    elements += product.in * product.out;
  return elements;
}

std::int64_t piece_rows(const ModelShape& shape) {
  const std::int64_t largest = std::max(block_elements(shape), kLeastPieceElements);
  const std::int64_t pieces = divide_up(shape.vocabulary * shape.hidden, largest);
  return round_up(divide_up(shape.vocabulary, pieces), kRowsTogether);
}

}  // namespace

LayerPlaces layer_places(const ModelShape& shape) {
  LayerPlaces places{.blocks = static_cast<std::int32_t>(shape.layers)};
  if (!architecture_of(shape).cuts_tables || !shape.has_own_output_table()) return places;
  const std::int64_t rows = piece_rows(shape);
  if (rows >= shape.vocabulary) return places;
  places.piece_rows = rows;
  places.table_rows = shape.vocabulary;
  places.embeddings = places.outputs = static_cast<std::int32_t>(divide_up(shape.vocabulary, rows));
  return places;
}

std::int64_t logit_count(const ModelShape& shape, LayerId layer) {
  const LayerPlaces places = layer_places(shape);
  if (!places.has_logits(layer)) return 0;
  return places.are_tables_cut() ? places.row_count(layer) : answer_count(shape);
}

std::int64_t widest_logits(const ModelShape& shape) {
  const LayerPlaces places = layer_places(shape);
  return places.are_tables_cut() ? places.piece_rows : answer_count(shape);
}

FlatLayout cut_tables(FlatLayout layout, const LayerPlaces& places) {
  if (!places.are_tables_cut()) return layout;
  const std::vector<LayerRange> whole = std::exchange(layout.layers, {});
  const TensorInfo& output = layout.tensors.back();
  const std::int64_t width = output.shape.at(1);
  CHECK_EQ(layout.tensors.front().count, whole.front().count);
  CHECK_EQ(layout.tensors.front().count, places.table_rows * width);
  CHECK_EQ(output.count, places.table_rows * width);
  const auto add_pieces = [&](const char* name, std::int64_t table_first, LayerId first) {
    for (std::int32_t i = 0; i < places.outputs; ++i) {
      const LayerId layer{index_of(first) + i};
      layout.layers.push_back({fmt::format("{}.{}", name, i),
                               table_first + places.first_row(layer) * width,
                               places.row_count(layer) * width});
    }
  };
  add_pieces("embedding", 0, LayerId{0});
  layout.layers.insert(layout.layers.end(), whole.begin() + 1, whole.end());
  layout.layers.back().count -= output.count;
  add_pieces("output", output.first, LayerId{index_of(places.head()) + 1});
  for (TensorInfo& tensor : layout.tensors) {
    if (index_of(tensor.layer) > 0)
      tensor.layer = LayerId{index_of(tensor.layer) + places.embeddings - 1};
  }
  layout.tensors.back().layer = LayerId{index_of(places.head()) + 1};
  layout.first_stays = false;
  return layout;
}

}  // namespace sluice::model
