// What a step decides, as functions of its gradients.

#include "core/session/step_decision.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace sluice;
using namespace sluice::session;

namespace {

StepPlan fp16_plan() {
  StepPlan plan;
  plan.position = {.step = 7,
                   .optimizer_step = 5,
                   .loss_scale = 1024,
                   .loss_scale_good_steps = 2,
                   .seed = 3,
                   .data_position = 80};
  plan.precision = ParameterKind::fp16;
  plan.max_grad_norm = 1;
  plan.micro_step_count = 4;
  plan.sample_count = 16;
  plan.loss_scale.growth_interval = 4;
  return plan;
}

float grad_scale_of(const offload::StepDecision& decision) {
  return std::get<optimizer::AdamWScalars>(decision.scalars).grad_scale;
}

}  // namespace

TEST_CASE("finite gradients are applied, unscaled and clipped") {
  const StepPlan plan = fp16_plan();
  const offload::StepDecision small = decide(plan, {.norm = 0.25, .finite = true}, 1024);
  CHECK(small.apply);
  CHECK(grad_scale_of(small) == 1.0f / 1024);
  const offload::StepDecision large = decide(plan, {.norm = 4, .finite = true}, 1024);
  CHECK(grad_scale_of(large) == Approx(1.0 / 1024 / 4).epsilon(1e-5));
  // With error feedback the loss scale is out already.
  CHECK(grad_scale_of(decide(plan, {.norm = 0.25, .finite = true}, 1)) == 1.0f);
}

TEST_CASE("the update is that of the next optimizer step") {
  const StepPlan plan = fp16_plan();
  const auto scalars = std::get<optimizer::AdamWScalars>(decide(plan, {}, 1).scalars);
  const auto sixth =
      std::get<optimizer::AdamWScalars>(optimizer::update_scalars(plan.update, 6, 1));
  CHECK(scalars.minus_step_size == sixth.minus_step_size);
}

TEST_CASE("a step that is applied moves all of the position") {
  const StepPlan plan = fp16_plan();
  const state::TrainingPosition next = position_after(plan, {.norm = 1, .finite = true});
  CHECK(next.step == 8);
  CHECK(next.optimizer_step == 6);
  CHECK(next.data_position == 96);
  CHECK(next.loss_scale == 1024);
  CHECK(next.loss_scale_good_steps == 3);
  CHECK(next.seed == 3);
}

TEST_CASE(
    "an overflow skips the step: the text moves on, the scale falls, the update does not count") {
  const StepPlan plan = fp16_plan();
  const GradientSummary overflow{.norm = INFINITY, .finite = false};
  CHECK_FALSE(decide(plan, overflow, 1024).apply);
  const state::TrainingPosition next = position_after(plan, overflow);
  CHECK(next.step == 8);
  CHECK(next.optimizer_step == 5);
  CHECK(next.data_position == 96);
  CHECK(next.loss_scale == 512);
  CHECK(next.loss_scale_good_steps == 0);
}

TEST_CASE("bf16 has no loss scale to change") {
  StepPlan plan = fp16_plan();
  plan.precision = ParameterKind::bf16;
  plan.position.loss_scale = 1;
  CHECK(position_after(plan, {.norm = 1, .finite = true}).loss_scale_good_steps == 2);
  CHECK(position_after(plan, {.norm = NAN, .finite = false}).loss_scale == 1);
}

TEST_CASE("backward multiplies the loss by its scale over the micro-steps") {
  CHECK(fp16_plan().gradient_scale() == 256);
}
