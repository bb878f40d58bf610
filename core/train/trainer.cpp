#include "core/train/trainer.h"

#include <algorithm>
#include <numeric>

#include "core/plan/lr_schedule.h"
#include "core/plan/model_options.h"

namespace sluice::train {
namespace {

double seconds(TimeNs dur_ns) { return static_cast<double>(dur_ns) / 1e9; }

class Trainer {
 public:
  Trainer(TrainingRun& run, const TrainHooks& hooks, std::span<const PlannedChange> changes)
      : run_(run),
        config_(run.config()),
        hooks_(hooks),
        knobs_(config_, changes),
        position_(run.store().committed().position),
        lr_schedule_{config_.update.lr, config_.schedule.min_lr, config_.schedule.warmup_steps,
                     config_.schedule.schedule_steps > 0 ? config_.schedule.schedule_steps
                                                         : config_.schedule.steps} {}

  Result<TrainReport> train();

 private:
  Status keep_snapshot();
  Status change_knobs();
  Status change_as_planned();
  Status change_as_asked(const AskedChange& asked);
  Status agreed(const Status& mine);
  Status refuse(const AskedChange& asked, const Error& why);
  Status put_in_force(const KnobSchedule::Wanted& wanted, const plan::PlannedKnobs& planned,
                      const AskedChange* asked);
  Status take_step();
  StepPlan step_plan() const;
  Status set_batches();
  Result<double> mean_loss() const;
  void report_step(const StepPlan& plan, const StepOutcome& outcome, double loss);
  void record_step(const StepReport& step, TimeNs start_ns);
  Status settle() { return finish_step(&TrainingRun::settle); }
  Status commit() { return finish_step(&TrainingRun::commit); }
  Status finish_step(Status (TrainingRun::*finish)());
  Status validate();
  Status validate_in_host_memory(std::int64_t batch_count, double& sum);
  Status validate_by_layer(std::int64_t batch_count, double& sum);
  Status sample();
  Status sample_by_layer();
  template <typename Work>
  Status on_compute_thread(runtime::Stage stage, Work work);
  bool wants_stop();
  void finish_report();

  TrainingRun& run_;
  const settings::RunConfig& config_;
  const TrainHooks& hooks_;
  KnobSchedule knobs_;
  state::TrainingPosition position_;
  plan::LrSchedule lr_schedule_;
  TrainReport report_;
  std::vector<runtime::LinkBytes> bytes_before_;  // by link, what crossed it outside of steps
};

Result<TrainReport> Trainer::train() {
  report_.first_step = position_.step;
  report_.losses.reserve(
      static_cast<std::size_t>(std::max<std::int64_t>(0, config_.schedule.steps - position_.step)));
  bytes_before_ = run_.bytes().links();
  while (position_.step < config_.schedule.steps && !report_.stopped) {
    RETURN_IF_ERROR(keep_snapshot());
    RETURN_IF_ERROR(change_knobs());
    RETURN_IF_ERROR(take_step());
    const std::int64_t every = config_.validation.every_steps;
    const bool is_last = position_.step == config_.schedule.steps;
    if (is_last || (every > 0 && position_.step % every == 0)) RETURN_IF_ERROR(validate());
    report_.stopped = !is_last && wants_stop();
  }
  RETURN_IF_ERROR(commit());
  RETURN_IF_ERROR(keep_snapshot());
  finish_report();
  RETURN_IF_ERROR(run_.keep_residual());
  if (!report_.stopped && config_.sample.tokens > 0) RETURN_IF_ERROR(sample());
  return std::move(report_);
}

bool Trainer::wants_stop() {
  return std::ranges::any_of(hooks_.requests,
                             [](TrainRequests* requests) { return requests->wants_stop(); });
}

// A snapshot that cannot be kept is no reason to end the run.
Status Trainer::keep_snapshot() {
  const bool is_wanted = std::ranges::any_of(
      hooks_.requests, [](TrainRequests* requests) { return requests->wants_snapshot(); });
  if (!is_wanted) return ok_status();
  RETURN_IF_ERROR(commit());
  const Result<KeptSnapshot> kept = run_.save_snapshot();
  for (TrainObserver* observer : hooks_.observers) observer->on_snapshot(kept);
  return ok_status();
}

Status Trainer::change_knobs() {
  RETURN_IF_ERROR(change_as_planned());
  for (TrainRequests* requests : hooks_.requests) {
    for (const AskedChange& asked : requests->take_changes()) {
      RETURN_IF_ERROR(change_as_asked(asked));
    }
  }
  return ok_status();
}

// What was planned for this step, and the warm-up's density.
Status Trainer::change_as_planned() {
  ASSIGN_OR_RETURN(const std::optional<KnobSchedule::Wanted> wanted,
                   knobs_.planned(position_.step));
  if (!wanted) return ok_status();
  ASSIGN_OR_RETURN(const plan::PlannedKnobs planned,
                   plan::plan_knobs(run_.live_plan(), wanted->now));
  return put_in_force(*wanted, planned, nullptr);
}

// A wrong wish is no reason to end the run; a change that fails halfway is.
Status Trainer::change_as_asked(const AskedChange& asked) {
  const Result<KnobSchedule::Wanted> wanted = knobs_.asked(position_.step, asked.settings);
  if (!wanted.ok()) return refuse(asked, wanted.error());
  const Result<plan::PlannedKnobs> planned = plan::plan_knobs(run_.live_plan(), wanted->now);
  const Status fits = agreed(planned.ok() ? ok_status() : Status(planned.error()));
  if (!fits.ok()) return refuse(asked, fits.error());
  RETURN_IF_ERROR(commit());
  const Status room = agreed(run_.make_room(*planned));
  if (!room.ok()) return refuse(asked, room.error());
  return put_in_force(*wanted, *planned, &asked);
}

Status Trainer::put_in_force(const KnobSchedule::Wanted& wanted, const plan::PlannedKnobs& planned,
                             const AskedChange* asked) {
  const std::vector<settings::KnobChange> changes = settings::knob_changes(config_, wanted.now);
  if (!changes.empty()) {
    RETURN_IF_ERROR(commit());
    // What crosses for it is no step's.
    runtime::add(bytes_before_, run_.bytes().links(), -1);
    RETURN_IF_ERROR(run_.apply(planned));
    runtime::add(bytes_before_, run_.bytes().links(), 1);
    if (!report_.losses.empty()) report_.knobs_changed = true;
  }
  knobs_.accept(wanted);
  RETURN_IF_ERROR(run_.keep_recipe(wanted.after_warmup));
  if (changes.empty() && asked == nullptr) return ok_status();
  const TimeNs now_ns = run_.runtime().now_ns();
  for (TrainObserver* observer : hooks_.observers) {
    observer->on_knobs_changed(position_.step, now_ns, changes, asked);
  }
  return ok_status();
}

// By all ranks: a change that one of them has no room for takes place on none.
Status Trainer::agreed(const Status& mine) {
  return run_.ranks() == nullptr ? mine : run_.ranks()->agreed(mine, "change of knobs");
}

Status Trainer::refuse(const AskedChange& asked, const Error& why) {
  const TimeNs now_ns = run_.runtime().now_ns();
  for (TrainObserver* observer : hooks_.observers) {
    observer->on_change_refused(position_.step, now_ns, asked, why);
  }
  return ok_status();
}

// What the last step still has to do is its update's time.
Status Trainer::finish_step(Status (TrainingRun::*finish)()) {
  const TimeNs from_ns = run_.runtime().now_ns();
  RETURN_IF_ERROR((run_.*finish)());
  const double waited_seconds = seconds(run_.runtime().now_ns() - from_ns);
  report_.update_seconds += waited_seconds;
  report_.total_seconds += waited_seconds;
  return ok_status();
}

Status Trainer::set_batches() {
  const std::int64_t micro_steps = config_.batch.grad_accum_steps;
  const std::int64_t first = run_.ranks() == nullptr ? 0 : run_.ranks()->rank() * micro_steps;
  for (std::int64_t m = 0; m < micro_steps; ++m) {
    const std::uint64_t position =
        position_.data_position + static_cast<std::uint64_t>((first + m) * config_.batch.batch);
    RETURN_IF_ERROR(run_.model().set_batch(
        static_cast<int>(m), run_.sampler().train_batch(position), model::BatchUse::training));
  }
  return ok_status();
}

// Over all ranks, in their order. One rank takes no memory for it.
Result<double> Trainer::mean_loss() const {
  const auto count = static_cast<int>(config_.batch.grad_accum_steps);
  if (run_.ranks() != nullptr) {
    std::vector<double> losses;
    for (int m = 0; m < count; ++m) losses.push_back(run_.model().loss(m));
    ASSIGN_OR_RETURN(losses, run_.ranks()->gather(losses, "losses"));
    const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
    return sum / static_cast<double>(losses.size());
  }
  double sum = 0;
  for (int m = 0; m < count; ++m) sum += run_.model().loss(m);
  return sum / count;
}

StepPlan Trainer::step_plan() const {
  StepPlan plan;
  plan.position = position_;
  plan.update = config_.update;
  plan.update.lr = plan::learning_rate(lr_schedule_, position_.step);
  plan.max_grad_norm = config_.arithmetic.max_grad_norm;
  plan.precision = config_.arithmetic.precision;
  plan.loss_scale = config_.loss_scale;
  plan.micro_step_count = static_cast<int>(config_.batch.grad_accum_steps);
  plan.rank_count = static_cast<int>(config_.batch.rank_count);
  plan.sample_count =
      config_.batch.batch * config_.batch.grad_accum_steps * config_.batch.rank_count;
  return plan;
}

Status Trainer::take_step() {
  RETURN_IF_ERROR(set_batches());
  const StepPlan plan = step_plan();
  StepOutcome outcome;
  RETURN_IF_ERROR(run_.runtime().run(training_step(run_.step_context(), plan, outcome)));
  ASSIGN_OR_RETURN(const double loss, mean_loss());
  report_step(plan, outcome, loss);
  position_ = outcome.position;
  if (report_.losses.size() == 1) {  // all of a step has been seen: later ones take no memory
    RETURN_IF_ERROR(settle());
    runtime::reserve_frames();
  }
  if (config_.arithmetic.precision == Float16Kind::bf16 && !outcome.gradients.finite) {
    RETURN_IF_ERROR(commit());
    return make_error(
        ErrorCode::internal,
        "the gradients of step {} are not finite (loss {}); bf16 has no loss scale to "
        "lower: try a smaller lr or more warmup_steps. Committed: step {}",
        position_.step, loss, position_.step);
  }
  return ok_status();
}

void Trainer::report_step(const StepPlan& plan, const StepOutcome& outcome, double loss) {
  StepReport step;
  step.step = position_.step + 1;
  step.steps = config_.schedule.steps;
  step.loss = loss;
  step.grad_norm = outcome.gradients.norm;
  step.lr = plan.update.lr;
  step.loss_scale = position_.loss_scale;
  step.skipped = !outcome.gradients.finite;
  step.tokens = plan.sample_count * config_.batch.sequence;
  step.forward_ns = outcome.forward_ns();
  step.backward_ns = outcome.backward_ns();
  step.update_ns = outcome.update_ns();
  step.total_ns = outcome.total_ns();
  report_.losses.push_back(loss);
  report_.ahead_count += outcome.ahead_count;
  report_.refuted_count += outcome.refuted_count;
  report_.refuted_step_count += outcome.refuted_count > 0 ? 1 : 0;
  report_.clipped_count += outcome.clipped_count;
  report_.clipped_step_count += outcome.clipped_count > 0 ? 1 : 0;
  report_.forward_seconds += seconds(step.forward_ns);
  report_.backward_seconds += seconds(step.backward_ns);
  report_.update_seconds += seconds(step.update_ns);
  report_.total_seconds += seconds(step.total_ns);
  record_step(step, outcome.start_ns);
  for (TrainObserver* observer : hooks_.observers) observer->on_step(step);
}

void Trainer::record_step(const StepReport& step, TimeNs start_ns) {
  if (run_.recording() == nullptr) return;
  record::StepRecord record;
  record.skipped = step.skipped;
  record.step = static_cast<std::int32_t>(position_.step);
  record.ts = start_ns;
  record.dur = step.total_ns;
  record.tokens = step.tokens;
  record.loss = step.loss;
  record.grad_norm = step.grad_norm;
  record.loss_scale = step.loss_scale;
  run_.recording()->record_step(record);
}

void Trainer::finish_report() {
  report_.last_step = position_.step;
  report_.link_bytes = run_.bytes().links();
  runtime::add(report_.link_bytes, bytes_before_, -1);
  const auto count = static_cast<double>(std::max<std::size_t>(1, report_.losses.size()));
  for (double* sum : {&report_.forward_seconds, &report_.backward_seconds, &report_.update_seconds,
                      &report_.total_seconds}) {
    *sum /= count;
  }
}

// Runs `work` as an operation on the compute thread, whose libtorch threads are warm.
template <typename Work>
Status Trainer::on_compute_thread(runtime::Stage stage, Work work) {
  runtime::Operation operation;
  operation.runtime = &run_.runtime();
  operation.label.stage = stage;
  operation.work.kind = runtime::WorkKind::function;
  operation.work.workers = runtime::Workers::compute;
  operation.work.function = [&work] { return work(); };
  const auto await_it = [](runtime::Operation awaited) -> runtime::Task<Status> {
    Status status = co_await awaited;
    co_return status;
  };
  return run_.runtime().run(await_it(operation));
}

// The parameters of the last step are all up.
Status Trainer::validate() {
  const std::int64_t count =
      std::min(run_.sampler().validation_batch_count(), config_.validation.batches);
  if (count == 0) return ok_status();
  RETURN_IF_ERROR(settle());
  double sum = 0;
  const bool comes_by_layer = run_.built().device != nullptr ||
                              run_.offload_options().streams_parameters() ||
                              run_.plan().share.is_gathered();
  RETURN_IF_ERROR(comes_by_layer ? validate_by_layer(count, sum)
                                 : validate_in_host_memory(count, sum));
  report_.validation_loss = sum / static_cast<double>(count);
  for (TrainObserver* observer : hooks_.observers) {
    observer->on_validation(position_.step, *report_.validation_loss);
  }
  return ok_status();
}

Status Trainer::validate_in_host_memory(std::int64_t batch_count, double& sum) {
  return on_compute_thread(runtime::Stage::validate, [&]() -> Status {
    for (std::int64_t i = 0; i < batch_count; ++i) {
      ASSIGN_OR_RETURN(const double loss,
                       model::evaluate(run_.model(), run_.sampler().validation_batch(i)));
      sum += loss;
    }
    return ok_status();
  });
}

// What crosses for it is no step's, and not among the report's bytes a step.
Status Trainer::validate_by_layer(std::int64_t batch_count, double& sum) {
  runtime::add(bytes_before_, run_.bytes().links(), -1);
  for (std::int64_t i = 0; i < batch_count; ++i) {
    RETURN_IF_ERROR(
        run_.model().set_batch(0, run_.sampler().validation_batch(i), model::BatchUse::validation));
    RETURN_IF_ERROR(run_.runtime().run(validation_pass(run_.step_context())));
    sum += run_.model().loss(0);
  }
  runtime::add(bytes_before_, run_.bytes().links(), 1);
  return ok_status();
}

Status Trainer::sample() {
  if (!run_.built().sample) return ok_status();
  if (run_.offload_options().streams_parameters() || run_.plan().share.is_gathered()) {
    return sample_by_layer();
  }
  return on_compute_thread(runtime::Stage::sample, [&]() -> Status {
    ASSIGN_OR_RETURN(report_.sample, run_.built().sample(plan::sample_options(config_)));
    return ok_status();
  });
}

Status Trainer::sample_by_layer() {
  ASSIGN_OR_RETURN(const std::unique_ptr<model::TextWriter> text,
                   run_.built().write_text(plan::sample_options(config_)));
  while (!text->is_done()) {
    RETURN_IF_ERROR(run_.runtime().run(text_pass(run_.step_context(), *text)));
  }
  report_.sample = text->text();
  return ok_status();
}

}  // namespace

Result<TrainReport> train(TrainingRun& run, const TrainHooks& hooks,
                          std::span<const PlannedChange> changes) {
  return Trainer(run, hooks, changes).train();
}

}  // namespace sluice::train
