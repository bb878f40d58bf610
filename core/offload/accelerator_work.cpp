#include "core/offload/accelerator_work.h"

#include "core/offload/gradient_format.h"
#include "core/offload/norm_plan.h"

namespace sluice::offload {

model::DeviceSelection device_selection(const OffloadOptions& options,
                                        const model::FlatLayout& layout,
                                        const state::Geometry& geometry) {
  model::DeviceSelection selection;
  selection.has_feedback = options.has_feedback();
  if (const auto norms = norm_plan(options, layout, geometry)) {
    for (const LayerId layer : all_ids<LayerId>(layout.layer_count())) {
      std::vector<model::DevicePart>& of_layer = selection.parts.emplace_back();
      for (const NormPart& part : norms->parts(layer)) {
        of_layer.push_back({.layer_offset = part.layer_offset, .count = part.count});
      }
    }
  }
  if (!options.is_sparse()) return selection;
  const GradientFormat format(options, layout, geometry);
  for (const LayerId layer : all_ids<LayerId>(layout.layer_count())) {
    std::vector<model::DeviceSegment>& of_layer = selection.segments.emplace_back();
    const std::int64_t first = format.kept_first(layer);
    for (const GradientSegment& segment : format.segments(layer)) {
      of_layer.push_back({.flat_first = geometry.first_element(segment.subgroup) + segment.first,
                          .layer_offset = segment.layer_offset,
                          .count = segment.count,
                          .kept_first = segment.kept_first - first,
                          .kept_count = segment.kept_count,
                          .first_index = segment.first});
    }
  }
  return selection;
}

}  // namespace sluice::offload
