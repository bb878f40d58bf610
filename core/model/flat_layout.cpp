#include "core/model/flat_layout.h"

#include <algorithm>

#include "base/fnv.h"

namespace sluice::model {

std::int64_t FlatLayout::largest_layer_elements() const {
  std::int64_t largest = 0;
  for (const LayerRange& range : layers) largest = std::max(largest, range.layer_elements());
  return largest;
}

std::int64_t FlatLayout::largest_passing() const {
  std::int64_t largest = 0;
  for (std::size_t l = first_stays ? 1 : 0; l < layers.size(); ++l)
    largest = std::max(largest, layers[l].count);
  return largest;
}

std::int64_t elements_within(const TensorInfo& tensor, const LayerRange& layer) {
  const std::int64_t first = std::max(tensor.first, layer.first);
  const std::int64_t end = std::min(tensor.first + tensor.count, layer.first + layer.count);
  return std::max<std::int64_t>(0, end - first);
}

std::uint64_t FlatLayout::fingerprint() const {
  std::uint64_t hash = kFnvOffset;
  for (const TensorInfo& tensor : tensors) {
    // Lengths go in too, so that no two lists of names and shapes read as the same bytes.
    hash = fnv1a(std::uint64_t{tensor.name.size()}, hash);
    hash = fnv1a(tensor.name, hash);
    hash = fnv1a(std::uint64_t{tensor.shape.size()}, hash);
    for (const std::int64_t extent : tensor.shape) {
      hash = fnv1a(static_cast<std::uint64_t>(extent), hash);
    }
  }
  return hash;
}

}  // namespace sluice::model
