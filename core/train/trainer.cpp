#include "core/train/trainer.h"

#include <algorithm>

#include "core/optimizer/loss_scale.h"
#include "core/plan/lr_schedule.h"
#include "core/plan/model_options.h"

namespace sluice::train {
namespace {

class Trainer {
 public:
  Trainer(TrainingRun& run, TrainObserver& observer, std::span<const PlannedChange> changes)
      : run_(run), config_(run.config()), observer_(observer), changes_(changes) {
    density_ = config_.offload.density;
    position_ = run.store().committed().position;
    schedule_ = {config_.update.lr, config_.schedule.min_lr, config_.schedule.warmup_steps,
                 config_.schedule.schedule_steps > 0 ? config_.schedule.schedule_steps
                                                     : config_.schedule.steps};
  }

  Result<TrainReport> train();

 private:
  Status change_knobs();
  Status change_as_planned();
  Status change_as_asked(const AskedChange& asked);
  Status change(settings::RunConfig wanted, const AskedChange* asked);
  Status refuse(const AskedChange& asked, const Error& why);
  Status keep_snapshot();
  Status take_step();
  Status settle();
  Status set_batches();
  double mean_loss() const;
  StepPlan step_plan();
  offload::StepDecision decide(const GradientSummary& gradients) const;
  state::TrainingPosition position_after(const GradientSummary& gradients) const;
  void report_step(const StepOutcome& outcome, double loss);
  Status validate();
  Status sample();
  Status on_compute_thread(runtime::Stage stage, Status (*work)(void*), void* context);

  TrainingRun& run_;
  const settings::RunConfig& config_;
  TrainObserver& observer_;
  std::span<const PlannedChange> changes_;
  double density_ = 1;  // after the warm-up
  state::TrainingPosition position_;
  plan::LrSchedule schedule_;
  TrainReport report_;
};

Result<TrainReport> Trainer::train() {
  report_.first_step = position_.step;
  report_.losses.reserve(
      static_cast<std::size_t>(std::max<std::int64_t>(0, config_.schedule.steps - position_.step)));
  const std::vector<runtime::LinkBytes> before = run_.bytes().links();
  while (position_.step < config_.schedule.steps && !report_.stopped) {
    RETURN_IF_ERROR(keep_snapshot());
    RETURN_IF_ERROR(change_knobs());
    RETURN_IF_ERROR(take_step());
    const std::int64_t every = config_.validation.every_steps;
    const bool last = position_.step == config_.schedule.steps;
    if (last || (every > 0 && position_.step % every == 0)) RETURN_IF_ERROR(validate());
    report_.stopped = !last && observer_.should_stop();
  }
  RETURN_IF_ERROR(settle());
  RETURN_IF_ERROR(keep_snapshot());
  report_.last_step = position_.step;
  report_.link_bytes = run_.bytes().links();
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t d = 0; d < 2; ++d) {
      report_.link_bytes[i].size_bytes[d] -= before[i].size_bytes[d];
      report_.link_bytes[i].padding_bytes[d] -= before[i].padding_bytes[d];
    }
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, report_.losses.size()));
  for (double* seconds : {&report_.forward_seconds, &report_.backward_seconds,
                          &report_.update_seconds, &report_.total_seconds}) {
    *seconds /= count;
  }
  RETURN_IF_ERROR(run_.keep_residual());
  if (!report_.stopped && config_.sample.tokens > 0) RETURN_IF_ERROR(sample());
  return std::move(report_);
}

Status Trainer::change_knobs() {
  RETURN_IF_ERROR(change_as_planned());
  for (const AskedChange& asked : observer_.asked_changes()) {
    RETURN_IF_ERROR(change_as_asked(asked));
  }
  return ok_status();
}

// One that cannot be kept is no reason to end the run.
Status Trainer::keep_snapshot() {
  if (!observer_.snapshot_is_asked()) return ok_status();
  RETURN_IF_ERROR(settle());
  observer_.on_snapshot(run_.save_snapshot());
  return ok_status();
}

// What was planned for this step, and the warm-up's density.
Status Trainer::change_as_planned() {
  const bool is_due = std::ranges::any_of(
      changes_, [&](const PlannedChange& change) { return change.step == position_.step; });
  const std::int64_t warmup = config_.offload.density_warmup_steps;
  const double density = settings::density_at(position_.step, density_, warmup);
  if (!is_due && density == config_.offload.density) return ok_status();
  settings::RunConfig wanted = config_;
  wanted.offload.density = density_;
  for (const PlannedChange& change : changes_) {
    if (change.step != position_.step) continue;
    ASSIGN_OR_RETURN(
        wanted, settings::with_knobs(wanted, change.settings, fmt::format("--at {}", change.step)));
  }
  return change(wanted, nullptr);
}

// A wrong wish is no reason to end the run; a change that fails halfway is.
Status Trainer::change_as_asked(const AskedChange& asked) {
  settings::RunConfig before = config_;
  before.offload.density = density_;
  const Result<settings::RunConfig> wanted = settings::with_knobs(before, asked.settings, "set");
  const Status checked = wanted.ok() ? run_.check_change(*wanted) : Status(wanted.error());
  if (!checked.ok()) return refuse(asked, checked.error());
  RETURN_IF_ERROR(settle());
  const Status room = run_.make_room(*wanted);
  return room.ok() ? change(*wanted, &asked) : refuse(asked, room.error());
}

Status Trainer::refuse(const AskedChange& asked, const Error& why) {
  observer_.on_change_refused(position_.step, run_.runtime().now_ns(), asked, why);
  return ok_status();
}

// `wanted` has the density after the warm-up.
Status Trainer::change(settings::RunConfig wanted, const AskedChange* asked) {
  density_ = wanted.offload.density;
  wanted.offload.density =
      settings::density_at(position_.step, density_, config_.offload.density_warmup_steps);
  const std::vector<settings::KnobChange> changed = settings::knob_changes(config_, wanted);
  if (!changed.empty()) {
    RETURN_IF_ERROR(settle());
    RETURN_IF_ERROR(run_.change(wanted));
    if (!report_.losses.empty()) report_.knobs_changed = true;
  }
  if (!changed.empty() || asked != nullptr) {
    observer_.on_knobs_changed(position_.step, run_.runtime().now_ns(), changed, asked);
  }
  return ok_status();
}

// What the last step still has to do is its update's time.
Status Trainer::settle() {
  const TimeNs from_ns = run_.runtime().now_ns();
  RETURN_IF_ERROR(run_.settle());
  const double seconds = static_cast<double>(run_.runtime().now_ns() - from_ns) / 1e9;
  report_.update_seconds += seconds;
  report_.total_seconds += seconds;
  return ok_status();
}

Status Trainer::set_batches() {
  for (std::int64_t m = 0; m < config_.batch.grad_accum_steps; ++m) {
    const std::uint64_t position =
        position_.data_position + static_cast<std::uint64_t>(m * config_.batch.batch);
    RETURN_IF_ERROR(
        run_.model().set_batch(static_cast<int>(m), run_.sampler().train_batch(position)));
  }
  return ok_status();
}

double Trainer::mean_loss() const {
  double sum = 0;
  const auto count = static_cast<int>(config_.batch.grad_accum_steps);
  for (int m = 0; m < count; ++m) sum += run_.model().loss(m);
  return sum / count;
}

StepPlan Trainer::step_plan() {
  StepPlan plan;
  plan.step = static_cast<std::int32_t>(position_.step);
  plan.loss_scale = position_.loss_scale;
  plan.gradient_scale = position_.loss_scale / static_cast<double>(config_.batch.grad_accum_steps);
  plan.decide = [this](const GradientSummary& gradients) { return decide(gradients); };
  plan.position_after = [this](const GradientSummary& gradients) {
    return position_after(gradients);
  };
  return plan;
}

offload::StepDecision Trainer::decide(const GradientSummary& gradients) const {
  offload::StepDecision decision;
  decision.apply = gradients.finite;
  optimizer::UpdateOptions update = config_.update;
  update.lr = plan::learning_rate(schedule_, position_.step);
  const double grad_scale = optimizer::grad_scale(run_.offload().remaining_loss_scale(),
                                                  gradients.norm, config_.arithmetic.max_grad_norm);
  decision.scalars = optimizer::update_scalars(update, position_.optimizer_step + 1, grad_scale);
  return decision;
}

state::TrainingPosition Trainer::position_after(const GradientSummary& gradients) const {
  state::TrainingPosition next = position_;
  next.step += 1;
  next.optimizer_step += gradients.finite ? 1 : 0;
  next.data_position +=
      static_cast<std::uint64_t>(config_.batch.batch * config_.batch.grad_accum_steps);
  if (config_.arithmetic.precision == Float16Kind::fp16) {
    const optimizer::LossScale scale =
        optimizer::next_loss_scale({position_.loss_scale, position_.loss_scale_good_steps},
                                   !gradients.finite, config_.loss_scale);
    next.loss_scale = scale.scale;
    next.loss_scale_good_steps = scale.good_steps;
  }
  return next;
}

Status Trainer::take_step() {
  RETURN_IF_ERROR(set_batches());
  const StepPlan plan = step_plan();
  StepOutcome outcome;
  RETURN_IF_ERROR(run_.runtime().run(training_step(run_.step_context(), plan, outcome)));
  const double loss = mean_loss();
  report_step(outcome, loss);
  position_ = position_after(outcome.gradients);
  if (report_.losses.size() == 1) {  // all of a step has been seen: later ones take no memory
    RETURN_IF_ERROR(settle());
    runtime::reserve_frames();
  }
  if (config_.arithmetic.precision == Float16Kind::bf16 && !outcome.gradients.finite) {
    RETURN_IF_ERROR(settle());
    return make_error(
        ErrorCode::internal,
        "the gradients of step {} are not finite (loss {}); bf16 has no loss scale to "
        "lower: try a smaller lr or more warmup_steps. Committed: step {}",
        position_.step, loss, position_.step);
  }
  return ok_status();
}

void Trainer::report_step(const StepOutcome& outcome, double loss) {
  StepReport step;
  step.step = position_.step + 1;
  step.steps = config_.schedule.steps;
  step.loss = loss;
  step.grad_norm = outcome.gradients.norm;
  step.lr = plan::learning_rate(schedule_, position_.step);
  step.loss_scale = position_.loss_scale;
  step.skipped = !outcome.gradients.finite;
  step.tokens = config_.batch.batch * config_.batch.sequence * config_.batch.grad_accum_steps;
  step.forward_ns = outcome.forward_ns();
  step.backward_ns = outcome.backward_ns();
  step.update_ns = outcome.update_ns();
  step.total_ns = outcome.total_ns();
  report_.losses.push_back(loss);
  report_.forward_seconds += static_cast<double>(step.forward_ns) / 1e9;
  report_.backward_seconds += static_cast<double>(step.backward_ns) / 1e9;
  report_.update_seconds += static_cast<double>(step.update_ns) / 1e9;
  report_.total_seconds += static_cast<double>(step.total_ns) / 1e9;
  if (run_.recording() != nullptr) {
    record::StepRecord record;
    record.skipped = step.skipped;
    record.step = static_cast<std::int32_t>(position_.step);
    record.ts = outcome.start_ns;
    record.dur = step.total_ns;
    record.tokens = step.tokens;
    record.loss = loss;
    record.grad_norm = step.grad_norm;
    record.loss_scale = step.loss_scale;
    run_.recording()->record_step(record);
  }
  observer_.on_step(step);
}

// Runs `work` as an operation on the compute thread, whose libtorch threads are warm.
Status Trainer::on_compute_thread(runtime::Stage stage, Status (*work)(void*), void* context) {
  runtime::Operation operation;
  operation.runtime = &run_.runtime();
  operation.label.stage = stage;
  operation.work.kind = runtime::WorkKind::function;
  operation.work.workers = runtime::Workers::compute;
  operation.work.function = [work, context] { return work(context); };
  const auto await_it = [](runtime::Operation awaited) -> runtime::Task<Status> {
    Status status = co_await awaited;
    co_return status;
  };
  return run_.runtime().run(await_it(operation));
}

Status Trainer::validate() {
  const std::int64_t available = run_.sampler().validation_batch_count();
  const std::int64_t count = std::min(available, config_.validation.batches);
  if (count == 0) return ok_status();
  RETURN_IF_ERROR(settle());  // the parameters are all up
  struct Work {
    TrainingRun* run;
    std::int64_t count;
    double sum;
  } work{&run_, count, 0};
  RETURN_IF_ERROR(on_compute_thread(
      runtime::Stage::validate,
      [](void* context) -> Status {
        auto& w = *static_cast<Work*>(context);
        for (std::int64_t i = 0; i < w.count; ++i) {
          ASSIGN_OR_RETURN(const double loss,
                           w.run->model().evaluate(w.run->sampler().validation_batch(i)));
          w.sum += loss;
        }
        return ok_status();
      },
      &work));
  report_.validation_loss = work.sum / static_cast<double>(count);
  observer_.on_validation(position_.step, *report_.validation_loss);
  return ok_status();
}

Status Trainer::sample() {
  if (!run_.built().sample) return ok_status();
  struct Work {
    Trainer* trainer;
  } work{this};
  return on_compute_thread(
      runtime::Stage::sample,
      [](void* context) -> Status {
        Trainer& trainer = *static_cast<Work*>(context)->trainer;
        ASSIGN_OR_RETURN(std::string text,
                         trainer.run_.built().sample(plan::sample_options(trainer.config_)));
        trainer.report_.sample = std::move(text);
        return ok_status();
      },
      &work);
}

}  // namespace

Result<TrainReport> train(TrainingRun& run, TrainObserver& observer,
                          std::span<const PlannedChange> changes) {
  return Trainer(run, observer, changes).train();
}

}  // namespace sluice::train
