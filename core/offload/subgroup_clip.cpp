#include "core/offload/subgroup_clip.h"

#include <algorithm>
#include <cmath>

#include "core/optimizer/loss_scale.h"

namespace sluice::offload {

SubgroupClip::SubgroupClip(const NormPlan& plan, const state::Geometry& geometry)
    : plan_(plan),
      sums_(static_cast<std::size_t>(plan.largest_sum_count())),
      segments_(static_cast<std::size_t>(plan.segment_count())) {
  for (const SubgroupId subgroup : all_ids<SubgroupId>(geometry.subgroup_count())) {
    share_of_limit_.push_back(std::sqrt(static_cast<double>(geometry.element_count(subgroup)) /
                                        static_cast<double>(geometry.parameter_count)));
  }
}

void SubgroupClip::begin(const ClipRule& rule) {
  rule_ = rule;
  std::ranges::fill(segments_, optimizer::GradientStats{});
}

optimizer::GradientStats SubgroupClip::note_gradient(LayerId layer, const std::byte* gradient,
                                                     optimizer::GradientKind kind) {
  plan_.sum_squares(layer, gradient, kind, sums_);
  return note_sums(layer, sums_);
}

optimizer::GradientStats SubgroupClip::note_sums(LayerId layer, std::span<const double> sums) {
  return plan_.add_up(layer, sums, segments_);
}

double SubgroupClip::norm(SubgroupId subgroup) const {
  return std::sqrt(stats(subgroup).sum_of_squares) / rule_.loss_scale;
}

bool SubgroupClip::is_clipped(SubgroupId subgroup) const {
  return optimizer::grad_scale(1, norm(subgroup), limit(subgroup)) < 1;
}

optimizer::UpdateScalars SubgroupClip::scalars(SubgroupId subgroup) const {
  const double grad_scale =
      optimizer::grad_scale(rule_.remaining_loss_scale, norm(subgroup), limit(subgroup));
  return optimizer::update_scalars(rule_.update, rule_.optimizer_step, grad_scale);
}

std::int32_t SubgroupClip::clipped_count() const {
  std::int32_t count = 0;
  for (const SubgroupId subgroup : ids_of(share_of_limit_)) count += is_clipped(subgroup) ? 1 : 0;
  return count;
}

}  // namespace sluice::offload
