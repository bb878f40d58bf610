#include "core/offload/gradient_format.h"

#include <algorithm>

#include "core/compress/sparse_gradient.h"

namespace sluice::offload {

GradientFormat::GradientFormat(const OffloadOptions& options, const model::FlatLayout& layout,
                               const state::Geometry& geometry)
    : is_sparse_(options.is_sparse()) {
  if (is_sparse_) cut(layout, geometry, options.density);
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
    const SubgroupId subgroup{s};
    const std::int64_t count = geometry.element_count(subgroup);
    size_bytes_.push_back(is_sparse_ ? compress::sparse_gradient_bytes(count, kept_count(subgroup),
                                                                       options.wire_gradient_kind())
                                     : count * optimizer::bytes_of(options.wire_gradient_kind()));
  }
}

// Upwards, because kept elements are numbered in flat order; each layer's segments are then turned
// round.
void GradientFormat::cut(const model::FlatLayout& layout, const state::Geometry& geometry,
                         double density) {
  std::int64_t kept_before = 0;
  for (const model::LayerRange& layer : layout.layers) {
    std::vector<GradientSegment>& segments = segments_.emplace_back();
    const std::int64_t layer_end = layer.first + layer.count;
    for (std::int64_t low = layer.first; low < layer_end;) {
      const SubgroupId subgroup{static_cast<std::int32_t>(low / geometry.subgroup_elements)};
      const std::int64_t subgroup_first = geometry.first_element(subgroup);
      const std::int64_t high =
          std::min(layer_end, subgroup_first + geometry.element_count(subgroup));
      if (low == subgroup_first) kept_first_.push_back(kept_before);
      const std::int64_t kept = compress::kept_count(density, high - low);
      segments.push_back(
          {subgroup, low - subgroup_first, high - low, low - layer.first, kept_before, kept});
      kept_before += kept;
      low = high;
    }
    std::ranges::reverse(segments);
  }
  kept_first_.push_back(kept_before);
}

std::int64_t GradientFormat::largest_bytes() const { return std::ranges::max(size_bytes_); }

std::int64_t GradientFormat::kept_count(LayerId layer) const {
  std::int64_t count = 0;
  for (const GradientSegment& segment : segments_[layer]) count += segment.kept_count;
  return count;
}

std::int64_t GradientFormat::largest_segment_elements() const {
  std::int64_t largest = 0;
  for (const auto& layer : segments_) {
    for (const GradientSegment& segment : layer) largest = std::max(largest, segment.count);
  }
  return largest;
}

std::int64_t GradientFormat::largest_segment_kept() const {
  std::int64_t largest = 0;
  for (const auto& layer : segments_) {
    for (const GradientSegment& segment : layer) largest = std::max(largest, segment.kept_count);
  }
  return largest;
}

}  // namespace sluice::offload
