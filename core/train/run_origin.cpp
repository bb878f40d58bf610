#include "core/train/run_origin.h"

#include "core/plan/run_plan.h"
#include "core/shard/share.h"
#include "core/weights/adapter_checkpoint.h"
#include "core/weights/checkpoint.h"
#include "core/weights/optimizer_checkpoint.h"

namespace sluice::train {

namespace {

// The state's arrays behind the master weights, which are the first.
std::span<const char* const> moments_of(const plan::RunPlan& plan) {
  return optimizer::rule_info(plan.config.update.rule).state_names.subspan(1);
}

}  // namespace

Result<RunOrigin> RunOrigin::of_new_state(const plan::RunPlan& plan) {
  RunOrigin origin;
  if (plan.shape.has_adapters()) {
    RETURN_IF_ERROR(origin.find_adapter(plan));
  } else {
    ASSIGN_OR_RETURN(std::optional<weights::Checkpoint> found,
                     weights::open_checkpoint(plan.config.files.model, plan.shape));
    if (found) origin.weights = std::make_shared<const weights::Checkpoint>(*std::move(found));
  }
  const std::string& folder = plan.config.files.optimizer_state;
  if (folder.empty()) return origin;
  if (plan.shape.has_adapters() && origin.adapter == nullptr) {
    return make_error(ErrorCode::config,
                      "optimizer_state={}: moments go on from the adapters that they were made "
                      "with; set lora_adapter= to the folder with these, or leave optimizer_state "
                      "out",
                      folder);
  }
  if (origin.weights == nullptr && origin.adapter == nullptr) {
    return make_error(ErrorCode::config,
                      "optimizer_state={}: moments go on from the weights that they were made "
                      "with, and those of {} are of the seed; set model= to the folder with the "
                      "weights, or leave optimizer_state out",
                      folder, plan.config.files.model);
  }
  ASSIGN_OR_RETURN(weights::OptimizerCheckpoint moments,
                   weights::OptimizerCheckpoint::open(
                       folder, {.shape = plan.shape,
                                .optimizer = optimizer::rule_info(plan.config.update.rule).name,
                                .arrays = moments_of(plan)}));
  origin.moments = std::make_shared<const weights::OptimizerCheckpoint>(std::move(moments));
  return origin;
}

Status RunOrigin::find_adapter(const plan::RunPlan& plan) {
  const std::string& folder = plan.config.lora.adapter;
  if (folder.empty()) return ok_status();
  ASSIGN_OR_RETURN(weights::AdapterCheckpoint found,
                   weights::AdapterCheckpoint::open(folder, plan.shape));
  adapter = std::make_shared<const weights::AdapterCheckpoint>(std::move(found));
  return ok_status();
}

std::vector<session::Fact> RunOrigin::facts() const {
  const std::string from = weights == nullptr ? "of the seed"
                                              : fmt::format("{}, {:016x}", weights->description(),
                                                            weights->fingerprint());
  std::vector<session::Fact> facts = {{"weights", from, settings::Decides::together}};
  facts.push_back({"lora_adapter", adapter == nullptr ? "new" : adapter->description(),
                   settings::Decides::together});
  facts.push_back({"optimizer_state", moments == nullptr ? "zeros" : moments->description(),
                   settings::Decides::together});
  return facts;
}

std::int64_t RunOrigin::optimizer_step() const { return moments == nullptr ? 0 : moments->step(); }

offload::FillInitial RunOrigin::fill(const plan::RunPlan& plan) const {
  const auto of_weights = [weights = weights, adapter = adapter, &plan](std::int64_t first,
                                                                        std::span<float> out) {
    if (adapter != nullptr) return adapter->fill(first, out);
    if (weights == nullptr || !weights->new_tensors().empty()) {
      model::fill_initial(plan.layout, static_cast<std::uint64_t>(plan.config.schedule.seed), first,
                          out);
    }
    return weights != nullptr ? weights->fill(first, out) : ok_status();
  };
  return [of_weights, moments = moments, &plan](std::int32_t variable, std::int64_t first,
                                                std::span<float> out) -> Status {
    const model::FlatLayout& held = plan.share.state;
    if (variable == 0) return shard::fill_held(plan.layout, held, first, out, of_weights);
    if (moments == nullptr) return ok_status();
    const auto array = static_cast<std::size_t>(variable) - 1;
    const auto of_array = [&moments, array](std::int64_t from, std::span<float> part) {
      return moments->fill(array, from, part);
    };
    return shard::fill_held(plan.layout, held, first, out, of_array);
  };
}

}  // namespace sluice::train
