#include "core/model/architecture.h"

#include <array>

#include "core/model/architectures/rows.h"

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
  if (index_of(layer) == 0) return architecture.embedding;
  if (index_of(layer) > shape.layers) return head_kind(shape);
  const bool is_of_decoder = shape.has_decoder() && index_of(layer) > shape.stacks.encoder_layers;
  return is_of_decoder ? architecture.decoder_block : architecture.block;
}

const LayerKind& head_kind(const ModelShape& shape) {
  const Architecture& architecture = architecture_of(shape);
  return shape.classifies() ? architecture.classifier_head : architecture.head;
}

LayerTokens layer_tokens(const ModelShape& shape, LayerId layer, std::int64_t batch,
                         std::int64_t sequence) {
  const bool is_target = layer_kind(shape, layer).side == Side::target;
  return {.own = batch * (is_target ? shape.target_sequence(sequence) : sequence),
          .source = batch * sequence};
}

}  // namespace sluice::model
