#include "core/offload/gradient_plan.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::offload {
namespace {

struct Planner {
  const state::Geometry& geometry;
  std::int64_t page_elements;
  GradientPlan plan;
  std::int64_t carried_count = 0;  // elements waiting, directly above the layer to come

  // The part [low, high) of a layer that starts at `layer_first`, inside one subgroup.
  void add_segment(LayerGradientPlan& layer, std::int64_t layer_first, SubgroupId subgroup,
                   std::int64_t low, std::int64_t high) {
    const std::int64_t first = geometry.first_element(subgroup);
    const std::int64_t top = high + carried_count;
    const std::int64_t write_low =
        low == first ? low : first + round_up(low - first, page_elements);
    if (write_low >= top) {
      layer.carry_count = high - low;
      layer.carry_kept_count = carried_count;
      carried_count = top - low;
      return;
    }
    for (std::int64_t chunk_high = top; chunk_high > write_low;) {
      const std::int64_t grid = first + round_down(chunk_high - first - 1, plan.bounce_elements);
      const std::int64_t chunk_low = std::max(write_low, grid);
      GradientChunk chunk;
      chunk.subgroup = subgroup;
      chunk.first = chunk_low - first;
      chunk.count = chunk_high - chunk_low;
      chunk.layer_offset = chunk_low - layer_first;
      chunk.layer_count = std::min(chunk_high, high) - chunk_low;
      chunk.check_index = plan.chunk_count[subgroup]++;
      CHECK_GT(chunk.layer_count, 0);
      layer.chunks.push_back(chunk);
      chunk_high = chunk_low;
    }
    layer.carry_count = write_low - low;
    carried_count = write_low - low;
  }
};

}  // namespace

GradientPlan make_gradient_plan(const model::FlatLayout& layout, const state::Geometry& geometry,
                                int element_bytes, std::int64_t bounce_bytes) {
  CHECK_EQ(bounce_bytes % kPageBytes, 0);
  Planner planner{geometry, kPageBytes / element_bytes, {}};
  planner.plan.layers.resize(layout.layer_count());
  planner.plan.chunk_count.resize(geometry.subgroup_count());
  planner.plan.bounce_elements = bounce_bytes / element_bytes;
  for (std::int32_t index = layout.layer_count(); index-- > 0;) {
    const LayerId layer{index};
    const model::LayerRange& range = layout.layer(layer);
    std::int64_t high = range.first + range.count;
    while (high > range.first) {
      const SubgroupId subgroup{static_cast<std::int32_t>((high - 1) / geometry.subgroup_elements)};
      const std::int64_t low = std::max(range.first, geometry.first_element(subgroup));
      planner.add_segment(planner.plan.layers[layer], range.first, subgroup, low, high);
      high = low;
    }
  }
  CHECK_EQ(planner.carried_count, 0);
  return std::move(planner.plan);
}

}  // namespace sluice::offload
