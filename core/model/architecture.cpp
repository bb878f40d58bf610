#include "core/model/architecture.h"

#include <array>

#include "core/model/architectures/rows.h"
#include "core/model/layer_places.h"

namespace sluice::model {

std::span<const Architecture* const> architectures() {
  static constexpr std::array<const Architecture*, kFamilyCount> kAll = {&kGpt2, &kBert,  &kBloom,
                                                                         &kVit,  &kLlama, &kT5};
  return kAll;
}

const Architecture& architecture_of(const ModelShape& shape) {
  return *architectures()[static_cast<std::size_t>(shape.family)];
}

const LayerKind& layer_kind(const ModelShape& shape, LayerId layer) {
  const Architecture& architecture = architecture_of(shape);
  const LayerPlaces places = layer_places(shape);
  if (places.is_embedding(layer)) return architecture.embedding;
  if (!places.is_block(layer)) return head_kind(shape);
  const bool is_of_decoder =
      shape.has_decoder() && places.block_of(layer) >= shape.stacks.encoder_layers;
  return is_of_decoder ? architecture.decoder_block : architecture.block;
}

const LayerKind& head_kind(const ModelShape& shape) {
  const Architecture& architecture = architecture_of(shape);
  return shape.classifies() ? architecture.classifier_head : architecture.head;
}

// The pieces of the output table read what the head made, and make logits alone.
std::vector<MadeTensor> made_of(const ModelShape& shape, LayerId layer) {
  const LayerPlaces places = layer_places(shape);
  if (places.is_output(layer)) return {};
  std::vector<MadeTensor> made = layer_kind(shape, layer).made(shape);
  if (places.are_tables_cut() && layer == places.head()) made.back().use = MadeUse::in_memory;
  return made;
}

std::vector<Product> products_of(const ModelShape& shape, LayerId layer) {
  const LayerPlaces places = layer_places(shape);
  if (places.is_output(layer)) return {{shape.hidden, places.row_count(layer)}};
  const LayerKind& kind = layer_kind(shape, layer);
  const bool has_none =
      kind.products == nullptr || (places.are_tables_cut() && layer == places.head());
  return has_none ? std::vector<Product>{} : kind.products(shape);
}

LayerTokens layer_tokens(const ModelShape& shape, LayerId layer, std::int64_t batch,
                         std::int64_t sequence) {
  const bool is_target = layer_kind(shape, layer).side == Side::target;
  return {.own = batch * (is_target ? shape.target_sequence(sequence) : sequence),
          .source = batch * sequence};
}

}  // namespace sluice::model
