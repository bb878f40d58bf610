#include "core/train/run_origin.h"

#include "core/plan/run_plan.h"
#include "core/shard/share.h"
#include "core/weights/checkpoint.h"

namespace sluice::train {

Result<RunOrigin> RunOrigin::of_new_state(const plan::RunPlan& plan) {
  RunOrigin origin;
  ASSIGN_OR_RETURN(std::optional<weights::Checkpoint> found,
                   weights::open_checkpoint(plan.config.files.model, plan.shape));
  if (found) origin.weights = std::make_shared<const weights::Checkpoint>(*std::move(found));
  return origin;
}

session::Fact RunOrigin::fact() const {
  const std::string from = weights == nullptr ? "of the seed"
                                              : fmt::format("{}, {:016x}", weights->description(),
                                                            weights->fingerprint());
  return {"weights", from, settings::Decides::together};
}

offload::FillInitial RunOrigin::fill(const plan::RunPlan& plan) const {
  const auto of_model = [weights = weights, &plan](std::int64_t first, std::span<float> out) {
    if (weights != nullptr) return weights->fill(first, out);
    model::fill_initial(plan.layout, static_cast<std::uint64_t>(plan.config.schedule.seed), first,
                        out);
    return ok_status();
  };
  return [of_model, &plan](std::int64_t first, std::span<float> out) {
    return shard::fill_held(plan.layout, plan.share.state, first, out, of_model);
  };
}

}  // namespace sluice::train
