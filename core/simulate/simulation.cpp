#include "core/simulate/simulation.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "core/offload/offload.h"
#include "core/plan/memory_plan.h"
#include "core/runtime/clocks.h"
#include "core/runtime/runtime.h"
#include "core/train/training_step.h"

namespace sluice::simulate {
namespace {

// Adds up, over the steps shown, what each link moves and each engine does, phase by phase. The
// phase is read off the outcome, which the step fills in as it goes.
class UseSink final : public runtime::OperationSink {
 public:
  UseSink(const platform::Platform& platform, const offload::Offload& offload,
          const train::StepOutcome& outcome)
      : offload_(offload),
        outcome_(outcome),
        links_(platform.links.size()),
        engines_(platform.engines.size()) {}

  void on_submit(const runtime::OperationState& /*state*/) override { operation_count_ += 1; }

  void on_finish(const runtime::OperationState& state) override {
    const runtime::Operation& operation = state.operation;
    const auto direction = static_cast<std::size_t>(operation.cost.direction);
    const ByPhase parts = parts_by_phase(state.start_ns, state.end_ns);
    for (const platform::LinkId link : operation.cost.route) {
      auto& phases = links_[static_cast<std::size_t>(platform::index_of(link))];
      phases[phase_of(stretch())].ended[direction] += operation.label.size_bytes;
      for (std::size_t p = 0; p < kPhaseCount; ++p) {
        phases[p].moved[direction] += parts[p] * static_cast<double>(operation.label.size_bytes);
      }
    }
    const std::int32_t engine = platform::index_of(operation.cost.engine);
    if (engine < 0) return;
    const TimeNs dur_ns = operation.cost.engine_dur_ns;
    const ByPhase kernel = parts_by_phase(state.end_ns - dur_ns, state.end_ns);
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
      engines_[static_cast<std::size_t>(engine)][p] +=
          kernel[p] * static_cast<double>(dur_ns) / 1e9;
    }
  }

  void on_step_end() {
    const auto add = [](TimeNs dur_ns, double& seconds) {
      seconds += static_cast<double>(dur_ns) / 1e9;
    };
    add(outcome_.forward_ns(), seconds_[0]);
    add(outcome_.backward_ns(), seconds_[1]);
    add(outcome_.update_ns(), seconds_[2]);
    add(outcome_.total_ns(), total_seconds_);
    steps_.push_back({outcome_.start_ns, outcome_.end_ns});
  }

  SimulatedStep mean_step(const platform::Platform& platform) const;

 private:
  struct LinkBytes {
    std::array<std::int64_t, 2> ended{};  // of operations that ended then
    std::array<double, 2> moved{};        // by when they were under way
  };

  // A step in stretches of time: the update of the step before, where it goes on (nbuffer);
  // forward; backward; the step's own update.
  static constexpr std::size_t kStretchCount = 4;
  static std::size_t phase_of(std::size_t stretch) {
    constexpr std::array<Phase, kStretchCount> kPhases = {Phase::update, Phase::forward,
                                                          Phase::backward, Phase::update};
    return static_cast<std::size_t>(kPhases[stretch]);
  }
  std::size_t stretch() const {
    if (outcome_.backward_end_ns > 0) return 3;
    if (outcome_.forward_end_ns > 0) return 2;
    return offload_.arrival().is_complete() ? 1 : 0;
  }

  // How much of an interval that ends now lies in each phase; what lies before the step, in none.
  ByPhase parts_by_phase(TimeNs from, TimeNs to) const {
    const std::array<TimeNs, kStretchCount> begins = {
        outcome_.start_ns, std::max(outcome_.start_ns, offload_.arrival().completed_ns()),
        outcome_.forward_end_ns, outcome_.backward_end_ns};
    ByPhase parts{};
    TimeNs end = to;
    for (std::size_t s = stretch() + 1; s-- > 0;) {
      const TimeNs begin = std::clamp(from, begins[s], end);
      parts[phase_of(s)] += to > from
                                ? static_cast<double>(end - begin) / static_cast<double>(to - from)
                                : (s == stretch() ? 1.0 : 0.0);
      end = std::min(end, begins[s]);
      if (from >= end) break;
    }
    return parts;
  }

  const offload::Offload& offload_;
  const train::StepOutcome& outcome_;
  // Sums over all steps.
  std::vector<StepTimes> steps_;
  ByPhase seconds_{};
  double total_seconds_ = 0;
  std::vector<std::array<LinkBytes, kPhaseCount>> links_;
  std::vector<ByPhase> engines_;
  std::int64_t operation_count_ = 0;
};

double busy_seconds(const platform::Link& link, const std::array<double, 2>& size_bytes) {
  const double read = size_bytes[0] / link.read_bytes_per_s;
  const double write = size_bytes[1] / link.write_bytes_per_s;
  return link.duplex == platform::Duplex::half ? read + write : std::max(read, write);
}

SimulatedStep UseSink::mean_step(const platform::Platform& platform) const {
  const auto count = static_cast<double>(steps_.size());
  SimulatedStep step;
  step.steps = steps_;
  for (std::size_t phase = 0; phase < kPhaseCount; ++phase) {
    step.seconds[phase] = seconds_[phase] / count;
  }
  step.total_seconds = total_seconds_ / count;
  step.operation_count = operation_count_ / std::ssize(steps_);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    LinkUse use{platform.links[i].name, {}, {}};
    for (std::size_t phase = 0; phase < kPhaseCount; ++phase) {
      const LinkBytes& bytes = links_[i][phase];
      for (std::size_t d = 0; d < bytes.ended.size(); ++d) {
        use.size_bytes[phase][d] = bytes.ended[d] / std::ssize(steps_);
      }
      // An operation's bytes are spread evenly over its time, which is not quite how they moved.
      use.busy_seconds[phase] =
          std::min(step.seconds[phase], busy_seconds(platform.links[i], bytes.moved) / count);
    }
    step.links.push_back(std::move(use));
  }
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    EngineUse use{platform.engines[i].name, engines_[i]};
    for (double& seconds : use.busy_seconds) seconds /= count;
    step.engines.push_back(std::move(use));
  }
  return step;
}

// Two versions of the state and the gradients must fit on a drive whose size the platform states.
Status check_capacity(const plan::RunPlan& plan, const state::Layout& layout) {
  const offload::GradientFormat format(plan.options, plan.layout, plan.geometry);
  for (std::size_t d = 0; d < plan.platform.devices.size(); ++d) {
    const platform::Device& device = plan.platform.devices[d];
    const DeviceId id{static_cast<std::int32_t>(d)};
    const std::int64_t size_bytes =
        layout.data_bytes(id) +
        offload::gradient_file_bytes(format, plan.device_map, id, plan.options);
    if (device.capacity_bytes == 0 || size_bytes <= device.capacity_bytes) continue;
    return make_error(
        ErrorCode::config,
        "{}: {} holds {}, and its share of {} takes {} (two versions of the state, and "
        "the gradients): use more devices",
        plan.platform.source, device.name, format_bytes(device.capacity_bytes), plan.shape.name,
        format_bytes(size_bytes));
  }
  return ok_status();
}

// The 16-bit parameters and what the offload takes; what computing takes is not known here.
Status check_host_memory(const plan::RunPlan& plan) {
  const offload::OffloadMemoryPlan memory =
      offload::plan_offload_memory(plan.options, plan.geometry, plan.layout);
  const std::int64_t size_bytes = plan.layout.parameter_count * 2 + memory.host_bytes();
  const std::int64_t has_bytes = plan.platform.host_memory_bytes;
  if (has_bytes == 0 || size_bytes <= has_bytes) return ok_status();
  return make_error(
      ErrorCode::memory,
      "{}: the host has {} of memory, and parameters, gradients and buffers of {} take "
      "{}{}: lower buffers, subgroup_elements or bounce_memory",
      plan.platform.source, format_bytes(has_bytes), plan.shape.name, format_bytes(size_bytes),
      memory.residual_bytes > 0 ? fmt::format(", {} of them for the residual of error_feedback",
                                              format_bytes(memory.residual_bytes))
                                : "");
}

// Records each operation, and has the records written down before their ring is full.
class PacedRecording final : public runtime::OperationSink {
 public:
  PacedRecording(runtime::RecordingSink& sink, const SimulationRecording& recording)
      : sink_(sink), recording_(recording) {}
  void on_submit(const runtime::OperationState& state) override {
    if (!is_over_) sink_.on_submit(state);
  }
  void on_found(const runtime::OperationState& state) override { sink_.on_found(state); }
  void on_buffers(DeviceId device, std::int32_t in_use, TimeNs now_ns) override {
    if (!is_over_) sink_.on_buffers(device, in_use, now_ns);
  }
  void on_finish(const runtime::OperationState& state) override {
    if (is_over_) return;
    sink_.on_finish(state);
    if (++count_ % kRecordsBetween == 0 && status_.ok()) status_ = recording_.write_down();
  }
  void end() { is_over_ = true; }
  const Status& status() const { return status_; }

 private:
  // With up to three flows and a dozen samples of counters each, a ring of records.
  static constexpr std::int64_t kRecordsBetween = 1 << 12;
  runtime::RecordingSink& sink_;
  const SimulationRecording& recording_;
  std::int64_t count_ = 0;
  bool is_over_ = false;
  Status status_;
};

void record_step(runtime::RecordingSink& sink, const plan::RunPlan& plan,
                 const train::StepOutcome& outcome) {
  const settings::BatchConfig& batch = plan.config.batch;
  record::StepRecord step;
  step.ts = outcome.start_ns;
  step.dur = outcome.end_ns - outcome.start_ns;
  step.tokens = batch.batch * batch.sequence * batch.grad_accum_steps;
  step.loss = step.grad_norm = step.loss_scale = std::numeric_limits<double>::quiet_NaN();
  sink.record_step(step);
}

// A step of nbuffer begins with what the one before has left, and the first two have less before
// them than any other. Of 165 settings on the sample machines 148 repeat themselves from the third
// to the fifth step on, and 10 never do: reads for the next step and this one's writes take turns
// in coming first, and long and short steps follow each other. Of those the mean of several is
// shown.
constexpr int kWarmUpsMin = 2;
constexpr int kWarmUpsMax = 12;
constexpr int kShownOfVarying = 6;  // twice a cycle of three, three times one of two

bool are_alike(TimeNs a_ns, TimeNs b_ns) { return std::abs(a_ns - b_ns) * 1000 <= b_ns; }

// Each simulated step is the first: what the update computes with does not change how long it
// takes.
train::StepPlan step_plan(const plan::RunPlan& plan) {
  train::StepPlan step;
  step.update = plan.config.update;
  step.micro_step_count = static_cast<int>(plan.config.batch.grad_accum_steps);
  return step;
}

// Whether a step has taken as long as the one before it.
Result<bool> warm_up(runtime::Runtime& runtime, train::StepContext& context,
                     const train::StepPlan& step) {
  TimeNs before_ns = 0;
  TimeNs dur_ns = 0;
  for (int i = 0; i < kWarmUpsMax && (i < kWarmUpsMin || !are_alike(before_ns, dur_ns)); ++i) {
    train::StepOutcome outcome;
    RETURN_IF_ERROR(runtime.run(train::training_step(context, step, outcome)));
    before_ns = std::exchange(dur_ns, outcome.total_ns());
  }
  return are_alike(before_ns, dur_ns);
}

}  // namespace

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      break;
  }
  return "update";
}

Result<settings::RunConfig> simulation_config(const std::string& model_path,
                                              const std::string& platform_path,
                                              std::span<const std::string> overrides) {
  ASSIGN_OR_RETURN(const model::ModelShape shape, model::load_model_shape(model_path));
  const std::string assumed = fmt::format(
      "name = '{}'\nmodel = '{}'\nplatform = '{}'\ntext = 'none'\nbatch = 4\nsequence = {}\n"
      "activations = 'recompute'\nsubgroup_elements = 85_000_000\nbounce_memory = '6.4GB'\n",
      shape.name, std::filesystem::absolute(model_path).string(),
      std::filesystem::absolute(platform_path).string(), shape.sequence);
  return settings::parse_run_config(assumed, "simulate", overrides);
}

Result<SimulatedStep> simulate_step(const plan::RunPlan& plan, const SimulationRecording* recording,
                                    runtime::OperationSink* listener) {
  RETURN_IF_ERROR(plan::check_device_memory(plan));
  RETURN_IF_ERROR(check_host_memory(plan));
  state::Layout layout(plan.geometry, plan.device_map);
  RETURN_IF_ERROR(check_capacity(plan, layout));
  runtime::Runtime runtime(
      std::make_unique<runtime::SimulatedClock>(plan.platform, runtime::Disturbance{}));
  csd::EmulatedFactory factory(csd::Payload::none);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<offload::Assembly> assembly,
      offload::Assembly::take(plan::assembly_plan(plan, csd::Payload::none), runtime, factory, {}));
  assembly->attach(layout);
  offload::Offload& offload = assembly->offload();
  train::StepContext context{runtime, plan.platform, offload,
                             nullptr, plan.layout,   plan.layer_costs};
  train::StepOutcome outcome;
  const train::StepPlan step = step_plan(plan);
  int shown_count = 1;
  if (plan.options.pipeline == offload::Pipeline::nbuffer) {
    ASSIGN_OR_RETURN(const bool is_settled, warm_up(runtime, context, step));
    if (!is_settled) shown_count = kShownOfVarying;
  }
  UseSink sink(plan.platform, offload, outcome);
  runtime.add_sink(&sink);
  if (listener != nullptr) runtime.add_sink(listener);
  std::optional<runtime::RecordingSink> spans;
  std::optional<PacedRecording> paced;
  if (recording != nullptr) {
    spans.emplace(*recording->recorder, plan.platform);
    paced.emplace(*spans, *recording);
    RETURN_IF_ERROR(recording->begin());
    plan::record_memory(*spans, plan, assembly->sites(), runtime.now_ns());
    runtime.add_sink(&*paced);
  }
  for (int i = 0; i < shown_count; ++i) {
    outcome = {};
    RETURN_IF_ERROR(runtime.run(train::training_step(context, step, outcome)));
    sink.on_step_end();
    if (recording == nullptr || i > 0) continue;
    RETURN_IF_ERROR(paced->status());
    record_step(*spans, plan, outcome);
    paced->end();
  }
  const SimulatedStep simulated = sink.mean_step(plan.platform);  // without what is left to write
  RETURN_IF_ERROR(runtime.run(offload.settle()));
  return simulated;
}

}  // namespace sluice::simulate
