#include "core/model/architecture.h"

#include <array>

#include "core/model/architectures/rows.h"

namespace sluice::model {

std::span<const Architecture* const> architectures() {
  static constexpr std::array<const Architecture*, kFamilyCount> kAll = {&kGpt2, &kBert, &kBloom,
                                                                         &kVit, &kLlama};
  return kAll;
}

const Architecture& architecture_of(const ModelShape& shape) {
  return *architectures()[static_cast<std::size_t>(shape.family)];
}

const LayerKind& layer_kind(const ModelShape& shape, LayerId layer) {
  const Architecture& architecture = architecture_of(shape);
  if (index_of(layer) == 0) return architecture.embedding;
  return index_of(layer) <= shape.layers ? architecture.block : architecture.head;
}

}  // namespace sluice::model
