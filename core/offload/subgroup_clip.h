#pragma once
// Clipping by subgroup (overlap=local): each subgroup is clipped by the norm of its own gradients,
// so it waits for no other's, and what it is updated by is known as soon as they are final. That
// is other mathematics than clipping by the norm of all.
//
// A subgroup of n of the model's N elements has the limit max_grad_norm x sqrt(n / N). If every
// subgroup is at its limit the norm of all is max_grad_norm, so no step applies more than that, as
// with the norm of all. The factor is the same function of norm and limit as there
// (optimizer::grad_scale). The norm is that of the subgroup's whole gradient as backward gave it:
// with density below 1 before anything is selected, without the residual.
//
// Thread contract: the schedule's thread, but for note_gradient(), which a worker calls while the
// operation that it is in is awaited. One layer after the other.

#include <cstdint>
#include <span>
#include <vector>

#include "core/offload/norm_plan.h"
#include "core/offload/step_decision.h"

namespace sluice::offload {

class SubgroupClip {
 public:
  // `plan` outlives it.
  SubgroupClip(const NormPlan& plan, const state::Geometry& geometry);

  // For a step that is to come.
  void begin(const ClipRule& rule);
  // A layer's gradients are known: sums them, or takes the sums of who has (NormPlan::sum_count()).
  // Returns the layer's own statistics.
  optimizer::GradientStats note_gradient(LayerId layer, const std::byte* gradient,
                                         optimizer::GradientKind kind);
  optimizer::GradientStats note_sums(LayerId layer, std::span<const double> sums);

  // Once all layers of the subgroup are known:
  bool is_finite(SubgroupId subgroup) const { return stats(subgroup).finite; }
  bool is_clipped(SubgroupId subgroup) const;
  optimizer::UpdateScalars scalars(SubgroupId subgroup) const;
  // Once all are: subgroups that are clipped, and where gradients are not finite.
  std::int32_t clipped_count() const;
  std::optional<NormPlan::Place> not_finite() const { return plan_.not_finite(segments_); }

  const NormPlan& plan() const { return plan_; }

 private:
  optimizer::GradientStats stats(SubgroupId subgroup) const {
    return plan_.add_up(subgroup, segments_);
  }
  double norm(SubgroupId subgroup) const;
  double limit(SubgroupId subgroup) const {
    return rule_.max_grad_norm * share_of_limit_[subgroup];
  }

  const NormPlan& plan_;
  IdVector<SubgroupId, double> share_of_limit_;  // sqrt(n / N)
  ClipRule rule_;
  std::vector<double> sums_;  // of one layer
  std::vector<optimizer::GradientStats> segments_;
};

}  // namespace sluice::offload
