#include "core/plan/run_extent.h"

#include "base/figure_text.h"
#include "core/model/layer_places.h"

namespace sluice::plan {
namespace {

// No fewer bytes than any layer keeps for its backward or needs in it (core/model/
// compute_memory.cpp, kept_bytes.cpp), of all layers: in double, which has no end here.
double step_bytes(const settings::BatchConfig& batch, const model::ModelShape& shape) {
  constexpr double kValueBytes = 4;
  const auto sequence = static_cast<double>(batch.sequence);
  const double tokens = static_cast<double>(batch.batch) * sequence;
  const auto heads = static_cast<double>(shape.heads);
  const double widths =
      48 * static_cast<double>(shape.hidden) + 8 * heads + 4 * static_cast<double>(shape.ffn);
  const double logits = 2 * static_cast<double>(shape.vocabulary + shape.classes);
  const double kept = tokens * (widths * static_cast<double>(shape.layers + 2) + logits);
  const double scores = tokens * heads * sequence;  // of one layer at a time
  return kValueBytes * (kept * static_cast<double>(batch.grad_accum_steps) + scores);
}

}  // namespace

Status check_step_extent(const settings::BatchConfig& batch, const model::ModelShape& shape) {
  const std::int64_t layers = layer_places(shape).count();
  if (batch.grad_accum_steps > kLayerPassesMax / layers) {
    return make_error(ErrorCode::config,
                      "grad_accum_steps={}: {} has {} layers, and a step may compute {} of them in "
                      "all: the most micro-batches that would do are {}; give each a larger batch",
                      batch.grad_accum_steps, shape.name, layers, format_whole(kLayerPassesMax),
                      kLayerPassesMax / layers);
  }
  if (step_bytes(batch, shape) <= kStepBytesMax) return ok_status();
  return make_error(ErrorCode::config,
                    "batch={}, sequence={} and grad_accum_steps={}: what the layers of {} keep of "
                    "so large a step is beyond what can be counted ({:.0e} bytes): lower one of "
                    "them",
                    batch.batch, batch.sequence, batch.grad_accum_steps, shape.name, kStepBytesMax);
}

Status check_subgroup_count(const state::Geometry& geometry, const model::ModelShape& shape) {
  const std::int64_t count = divide_up(geometry.parameter_count, geometry.subgroup_elements);
  if (count <= kSubgroupsMax) return ok_status();
  return make_error(ErrorCode::config,
                    "subgroup_elements={} (elements, not MiB): the {} parameters of {} would be {} "
                    "subgroups, and there may be {}: the smallest subgroup_elements that would do "
                    "is {}",
                    geometry.subgroup_elements, format_whole(geometry.parameter_count), shape.name,
                    format_whole(count), format_whole(kSubgroupsMax),
                    divide_up(geometry.parameter_count, kSubgroupsMax));
}

}  // namespace sluice::plan
