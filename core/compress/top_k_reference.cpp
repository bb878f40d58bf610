// Which elements are kept, written to be read beside core/compress/selection.h.

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "core/compress/top_k.h"

namespace sluice::compress {

void top_k_reference(std::span<const float> values, std::int64_t k, const KeptRoom& room) {
  CHECK_LE(k, room.capacity);
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t magnitude_a = magnitude_of(values[a]);
    const std::uint32_t magnitude_b = magnitude_of(values[b]);
    return magnitude_a != magnitude_b ? magnitude_a > magnitude_b : a < b;
  });
  order.resize(static_cast<std::size_t>(k));
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    room.indices[i] = order[i];
    room.values[i] = values[order[i]];
  }
}

}  // namespace sluice::compress
