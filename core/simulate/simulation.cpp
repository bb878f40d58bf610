#include "core/simulate/simulation.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "core/activation/activation_carrier.h"
#include "core/csd/device_factory.h"
#include "core/offload/assembly.h"
#include "core/offload/assembly_plan.h"
#include "core/offload/offload.h"
#include "core/offload/offload_memory.h"
#include "core/offload/parameter_carrier.h"
#include "core/offload/state_cache.h"
#include "core/offload/step_gradients.h"
#include "core/offload/update_site.h"
#include "core/plan/drive_room.h"
#include "core/plan/memory_plan.h"
#include "core/plan/run_plan.h"
#include "core/runtime/clocks.h"
#include "core/runtime/runtime.h"
#include "core/shard/message_memory.h"
#include "core/simulate/paced_recording.h"
#include "core/simulate/rank_part.h"
#include "core/simulate/usage.h"
#include "core/train/shard_groups.h"
#include "core/train/shard_traffic.h"
#include "core/train/training_step.h"
#include "core/weights/model_folder.h"

namespace sluice::simulate {
namespace {

// The parameters and what the offload takes, without state that stays in memory; what
// computing takes is not known here.
std::int64_t host_bytes(const plan::RunPlan& plan) {
  std::int64_t parameter_bytes = 0;
  for (const MemoryItem& item : plan::parameter_items(plan)) parameter_bytes += item.size_bytes;
  return parameter_bytes + plan.activations.host_bytes() +
         shard::message_memory_bytes(plan.share, plan.config.batch.rank_count) +
         offload::plan_offload_memory(plan.options, plan.geometry, plan.share.state).host_bytes();
}

std::int64_t kept_host_bytes(const plan::RunPlan& plan) {
  if (plan.options.method == offload::Method::csd) return 0;
  return offload::count_of(offload::choose_kept(plan.options, plan.geometry, plan.device_map)) *
         offload::kept_subgroup_bytes(plan.options, plan.geometry);
}

// With state_cache=auto the plan is that of what host and devices have.
Result<plan::RunPlan> with_filled_cache(const plan::RunPlan& plan) {
  plan::RunPlan filled = plan;
  const std::int64_t asked_bytes = plan.config.resources.host_memory_bytes;
  const std::int64_t has_bytes = asked_bytes > 0 ? asked_bytes : plan.platform.host_memory_bytes;
  const bool is_automatic = plan.config.offload.state_cache_bytes == settings::kAutomatic;
  if (is_automatic && plan.options.method == offload::Method::host && has_bytes == 0) {
    return make_error(ErrorCode::config,
                      "state_cache=auto: {} does not say how much memory the host has; say "
                      "host_memory",
                      plan.platform.source);
  }
  plan::fill_state_cache(filled, has_bytes - host_bytes(plan));
  return filled;
}

Status check_host_memory(const plan::RunPlan& plan) {
  const offload::OffloadMemoryPlan memory =
      offload::plan_offload_memory(plan.options, plan.geometry, plan.share.state);
  const std::int64_t size_bytes = host_bytes(plan);
  const std::int64_t has_bytes = plan.platform.host_memory_bytes;
  if (has_bytes == 0 || size_bytes + kept_host_bytes(plan) <= has_bytes) return ok_status();
  if (size_bytes <= has_bytes) {
    const std::int64_t subgroup_bytes = offload::kept_subgroup_bytes(plan.options, plan.geometry);
    return make_error(ErrorCode::memory,
                      "{}: the host has {} of memory, and parameters, gradients and buffers of {} "
                      "take {}: the largest state_cache that fits is {}",
                      plan.platform.source, format_bytes(has_bytes), plan.shape.name,
                      format_bytes(size_bytes),
                      (has_bytes - size_bytes) / subgroup_bytes * subgroup_bytes);
  }
  return make_error(
      ErrorCode::memory,
      "{}: the host has {} of memory, and parameters, gradients and buffers of {} take "
      "{}{}: lower buffers, subgroup_elements or bounce_memory",
      plan.platform.source, format_bytes(has_bytes), plan.shape.name, format_bytes(size_bytes),
      memory.residual_bytes > 0 ? fmt::format(", {} of them for the residual of error_feedback",
                                              format_bytes(memory.residual_bytes))
                                : "");
}

// A step of nbuffer begins with what the one before has left, and the first two have less before
// them than any other. Of 165 settings on the sample machines 148 repeat themselves from the third
// to the fifth step on, and 10 never do: reads for the next step and this one's writes take turns
// in coming first, and long and short steps follow each other. For these the mean of several is
// shown.
constexpr int kWarmUpsMin = 2;
constexpr int kWarmUpsMax = 12;
constexpr int kShownOfVarying = 6;  // twice a cycle of three, three times one of two

// Assumed where nobody says: three buffer sets fit into the 4 GiB of a SmartSSD, with the
// subgroup's 16-bit copy or without.
constexpr std::int64_t kSubgroupElements = 85'000'000;
constexpr std::int64_t kSubgroupElementsWithCopy = 75'000'000;

// A simulation of this size takes a minute or a few. A step has about so many operations a
// subgroup, and two a layer and micro-batch.
constexpr std::int64_t kOperationsMax = 50'000'000;
constexpr std::int64_t kOperationsASubgroup = 12;

bool are_alike(TimeNs a_ns, TimeNs b_ns) { return std::abs(a_ns - b_ns) * 1000 <= b_ns; }

// The values that the update computes with do not change how long it takes, so every simulated step
// is one of the first: by number the steps from one commit to the next.
session::StepPlan step_plan(const plan::RunPlan& plan) {
  session::StepPlan step;
  step.update = plan.config.update;
  step.micro_step_count = static_cast<int>(plan.config.batch.grad_accum_steps);
  return step;
}

// A plan's machine in virtual time, which takes steps.
class Machine {
 public:
  // `part`: null, it is the only rank.
  static Result<std::unique_ptr<Machine>> make(const plan::RunPlan& plan, const RankPart* part) {
    std::unique_ptr<Machine> machine(new Machine(plan));
    ASSIGN_OR_RETURN(machine->assembly_,
                     offload::Assembly::take(plan::assembly_plan(plan, csd::Payload::none),
                                             machine->runtime_, machine->factory_, {}));
    machine->assembly_->attach(machine->layout_);
    machine->activations_.emplace(activation::ActivationCarrier::Parts{
        machine->runtime_, plan.platform, machine->assembly_->drives(), plan.layout,
        plan.activations});
    if (part != nullptr && part->groups() != nullptr) machine->attach_shards(plan, *part);
    machine->context_.reset(new train::StepContext{
        .runtime = machine->runtime_,
        .platform = plan.platform,
        .offload = machine->offload(),
        .layout = plan.layout,
        .layer_costs = plan.layer_costs,
        .micro_batch_bytes =
            model::batch_bytes(plan.shape, plan.config.batch.batch, plan.config.batch.sequence),
        .loss_bytes = model::loss_bytes(plan.shape),
        .activations = &*machine->activations_,
        .ranks = part != nullptr ? &part->ranks() : nullptr,
        .shards = machine->shards_ ? &*machine->shards_ : nullptr});
    return machine;
  }

  runtime::Runtime& runtime() { return runtime_; }
  offload::Offload& offload() { return assembly_->offload(); }
  const offload::UpdateSites& sites() const { return assembly_->sites(); }

  Status take_step(train::StepOutcome& outcome) {
    RETURN_IF_ERROR(runtime_.run(train::training_step(*context_, step_, outcome)));
    RETURN_IF_ERROR(check_time());
    const std::int64_t step = (step_.position.step + 1) % offload().options().commit_every;
    step_.position.step = static_cast<std::int32_t>(step);
    return ok_status();
  }
  Status settle() {
    const Status settled = runtime_.run(offload().settle());
    const Status shared = shards_ ? runtime_.run(shards_->settle()) : ok_status();
    return settled.ok() ? shared : settled;
  }

 private:
  explicit Machine(const plan::RunPlan& plan)
      : layout_(plan.geometry, plan.device_map),
        runtime_(std::make_unique<runtime::SimulatedClock>(plan.platform, runtime::Disturbance{})),
        factory_(csd::Payload::none),
        step_(step_plan(plan)) {}

  // Times saturate, and sums of what is near their end would not.
  Status check_time() {
    constexpr TimeNs kLongestNs = platform::FlowNetwork::kLatest / 4;
    if (runtime_.now_ns() <= kLongestNs) return ok_status();
    return make_error(ErrorCode::config,
                      "{}: by its rates the simulated steps take more than {} years in all, which "
                      "is beyond what can be counted",
                      context_->platform.source, kLongestNs / 1'000'000'000 / 86'400 / 365);
  }

  void attach_shards(const plan::RunPlan& plan, const RankPart& part) {
    const auto sized = [&plan](std::int64_t count) {
      return ParameterSpan(nullptr, count, plan.options.parameter_kind);
    };
    shards_.emplace(train::ShardTraffic::Parts{
        runtime_, *part.groups(), plan.share, part.overlaps(), plan.layout, offload(),
        sized(plan.layout.parameter_count), sized(plan.share.parameters.parameter_count)});
  }

  state::Layout layout_;
  runtime::Runtime runtime_;
  csd::EmulatedFactory factory_;
  std::unique_ptr<offload::Assembly> assembly_;
  std::optional<activation::ActivationCarrier> activations_;
  std::optional<train::ShardTraffic> shards_;
  std::unique_ptr<train::StepContext> context_;
  session::StepPlan step_;
};

// Where steps differ by where they stand between two commits, whole rounds of them are taken, and
// whole rounds are shown.
struct Rounds {
  int warm_ups = 0;
  int shown = 0;
};
Rounds rounds_of(const plan::RunPlan& plan) {
  const bool is_overlapped = plan.options.pipeline == offload::Pipeline::nbuffer;
  const std::int64_t round = plan.options.commit_every;
  return {static_cast<int>(round_up(is_overlapped ? kWarmUpsMax : 1, round)),
          static_cast<int>(round_up(is_overlapped ? kShownOfVarying : 1, round))};
}

Result<int> warm_up_in_rounds(const plan::RunPlan& plan, Machine& machine) {
  const Rounds rounds = rounds_of(plan);
  for (int i = 0; i < rounds.warm_ups; ++i) {
    train::StepOutcome outcome;
    RETURN_IF_ERROR(machine.take_step(outcome));
  }
  return rounds.shown;
}

// The steps that are taken at least.
Status check_effort(const plan::RunPlan& plan) {
  const Rounds rounds = rounds_of(plan);
  const std::int64_t steps =
      plan.options.commit_every > 1 ? rounds.warm_ups + rounds.shown : kWarmUpsMin + 1;
  const std::int64_t passes = plan.config.batch.grad_accum_steps * plan.layout.layer_count();
  const std::int64_t operations =
      steps * (kOperationsASubgroup * plan.geometry.subgroup_count() + 2 * passes);
  if (operations <= kOperationsMax) return ok_status();
  return make_error(ErrorCode::config,
                    "{} steps of {} subgroups and {} layers in {} micro-batches each are some {} "
                    "million operations, and a simulation takes {} million at most: raise "
                    "subgroup_elements, or lower commit_every or grad_accum_steps",
                    steps, plan.geometry.subgroup_count(), plan.layout.layer_count(),
                    plan.config.batch.grad_accum_steps, operations / 1'000'000,
                    kOperationsMax / 1'000'000);
}

// Takes steps until one has taken as long as the one before it. How many are shown then.
Result<int> warm_up(const plan::RunPlan& plan, Machine& machine) {
  if (plan.options.commit_every > 1) return warm_up_in_rounds(plan, machine);
  if (plan.options.pipeline != offload::Pipeline::nbuffer) {
    train::StepOutcome outcome;  // it reads what stays in memory from then on
    if (plan.options.state_cache_bytes > 0) RETURN_IF_ERROR(machine.take_step(outcome));
    return 1;
  }
  TimeNs before_ns = 0;
  TimeNs dur_ns = 0;
  for (int i = 0; i < kWarmUpsMax && (i < kWarmUpsMin || !are_alike(before_ns, dur_ns)); ++i) {
    train::StepOutcome outcome;
    RETURN_IF_ERROR(machine.take_step(outcome));
    before_ns = std::exchange(dur_ns, outcome.total_ns());
  }
  return are_alike(before_ns, dur_ns) ? 1 : kShownOfVarying;
}

// Steps as they are shown: who records and who listens is told of no others.
struct ShownSteps {
  ShownSteps(const plan::RunPlan& plan, Machine& machine)
      : usage(plan.platform, machine.offload(), outcome) {}

  train::StepOutcome outcome;
  UsageSink usage;
  std::optional<PacedRecording> paced;
};

Status take_shown(const plan::RunPlan& plan, Machine& machine, ShownSteps& shown,
                  const SimulationRecording* recording, runtime::OperationSink* listener) {
  ASSIGN_OR_RETURN(const int shown_count, warm_up(plan, machine));
  machine.runtime().add_sink(&shown.usage);
  if (listener != nullptr) machine.runtime().add_sink(listener);
  if (recording != nullptr) {
    shown.paced.emplace(*recording, plan);
    RETURN_IF_ERROR(shown.paced->begin(machine.sites(), machine.runtime().now_ns()));
    machine.runtime().add_sink(&*shown.paced);
  }
  for (int i = 0; i < shown_count; ++i) {
    shown.outcome = {};
    RETURN_IF_ERROR(machine.take_step(shown.outcome));
    shown.usage.on_step_end();
    if (shown.paced && i == 0) RETURN_IF_ERROR(shown.paced->end(shown.outcome));
  }
  return ok_status();
}

Result<SimulatedStep> simulate_steps(const plan::RunPlan& asked,
                                     const SimulationRecording* recording,
                                     runtime::OperationSink* listener, const RankPart* part) {
  RETURN_IF_ERROR(check_effort(asked));
  ASSIGN_OR_RETURN(const plan::RunPlan plan, with_filled_cache(asked));
  RETURN_IF_ERROR(plan::check_device_memory(plan));
  RETURN_IF_ERROR(check_host_memory(plan));
  RETURN_IF_ERROR(plan::check_capacity(plan));
  ASSIGN_OR_RETURN(const std::unique_ptr<Machine> machine, Machine::make(plan, part));
  ShownSteps shown(plan, *machine);
  const Status taken = take_shown(plan, *machine, shown, recording, listener);
  // A step that is not shown is under way still, also where nothing could be recorded.
  const SimulatedStep mean = taken.ok() ? shown.usage.mean_step() : SimulatedStep();
  const Status settled = machine->settle();
  if (!taken.ok()) return taken.error();
  if (!settled.ok()) return settled.error();
  return mean;
}

}  // namespace

Result<settings::RunConfig> simulation_config(const std::string& model_path,
                                              const std::string& platform_path,
                                              std::span<const std::string> overrides) {
  ASSIGN_OR_RETURN(const model::ModelShape shape, weights::load_shape(model_path));
  // Values, not a text to be read: a name or a path may hold whatever ends a text.
  settings::RunConfig assumed;
  assumed.files.name = shape.name;
  assumed.files.model = std::filesystem::absolute(model_path).string();
  assumed.files.platform = std::filesystem::absolute(platform_path).string();
  assumed.files.text = "none";
  assumed.batch.batch = 4;
  assumed.batch.sequence = shape.sequence;
  assumed.arithmetic.activations = model::Activations::recompute;
  assumed.offload.bounce_memory_bytes = 6'400'000'000;
  const auto config_with = [&](std::int64_t subgroup_elements) {
    assumed.offload.subgroup_elements = subgroup_elements;
    return settings::override_run_config(assumed, "simulate", overrides);
  };
  ASSIGN_OR_RETURN(settings::RunConfig config, config_with(kSubgroupElements));
  const bool has_copy = has_16_bits(config.arithmetic.precision) &&
                        config.offload.method == settings::Method::csd &&
                        config.offload.parameters == settings::ParameterTier::storage;
  if (has_copy) return config_with(kSubgroupElementsWithCopy);
  return config;
}

Result<SimulatedStep> simulate_step(const plan::RunPlan& asked,
                                    const SimulationRecording* recording,
                                    runtime::OperationSink* listener) {
  return simulate_steps(asked, recording, listener, nullptr);
}

Result<SimulatedStep> simulate_rank(const plan::RunPlan& plan, const RankPart& part,
                                    const SimulationRecording* recording,
                                    runtime::OperationSink* listener) {
  return simulate_steps(plan, recording, listener, &part);
}

}  // namespace sluice::simulate
