#include "core/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/plan/lr_schedule.h"
#include "core/plan/run_plan.h"
#include "core/session/knob_changes.h"
#include "core/session/open_run.h"
#include "core/session/run_clock.h"
#include "core/session/run_state.h"
#include "core/train/divergence.h"
#include "core/train/ranks.h"
#include "core/train/step_parts.h"
#include "core/train/training_run.h"
#include "core/train/training_step.h"

namespace sluice::train {
namespace {

double seconds(TimeNs dur_ns) { return static_cast<double>(dur_ns) / 1e9; }

// Room for so many losses is made before the first step. A run may be asked for as many steps as
// it gets until somebody stops it; beyond these the room doubles as they come.
constexpr std::int64_t kLossesAhead = 65'536;

class Trainer {
 public:
  Trainer(TrainingRun& run, const session::RunHooks& hooks,
          std::span<const session::PlannedChange> changes)
      : run_(run),
        config_(run.config()),
        hooks_(hooks),
        knobs_(run, config_, hooks, changes),
        position_(run.session().state().store().committed().position),
        skipped_(config_, position_.step),
        lr_schedule_(plan::lr_schedule_of(config_)) {}

  Result<TrainReport> train();

 private:
  Status keep_snapshot();
  Status change_knobs();
  Status take_step();
  session::StepPlan step_plan() const;
  Error given_up(const std::string& why, std::int64_t weights_step, double loss);
  Status set_batches();
  Result<double> mean_loss() const;
  void report_step(const session::StepPlan& plan, const StepOutcome& outcome, double loss);
  Status settle() { return finish_step(&TrainingRun::settle); }
  Status commit() { return finish_step(&TrainingRun::commit); }
  Status finish_step(Status (TrainingRun::*finish)());
  Status validate();
  Result<double> validation_loss(std::int64_t batch, double divisor);
  Result<double> validation_loss_by_layer(std::int64_t batch, double divisor);
  Status sample();
  Status write_some(model::TextWriter& text);
  void tell_of_work(const char* what, std::int64_t done, std::int64_t count);
  template <typename Work>
  Status on_compute_thread(stages::Stage stage, Work work);
  bool wants_stop();
  void finish_report();
  model::TrainableModel& model() const { return *run_.built().model; }
  runtime::Runtime& runtime() { return run_.session().runtime(); }
  runtime::ByteCounters& bytes() { return run_.session().clock().bytes(); }

  TrainingRun& run_;
  const settings::RunConfig& config_;
  const session::RunHooks& hooks_;
  session::KnobChanges knobs_;
  state::TrainingPosition position_;
  SkippedSteps skipped_;
  plan::LrSchedule lr_schedule_;
  TrainReport report_;
  bool stop_is_asked_ = false;
  std::vector<runtime::LinkBytes> bytes_before_;  // by link, what crossed it outside of steps
};

Result<TrainReport> Trainer::train() {
  report_.first_step = position_.step;
  report_.losses.reserve(static_cast<std::size_t>(
      std::clamp<std::int64_t>(config_.schedule.steps - position_.step, 0, kLossesAhead)));
  bytes_before_ = bytes().links();
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
  knobs_.refuse_the_rest(position_.step);
  RETURN_IF_ERROR(keep_snapshot());
  finish_report();
  RETURN_IF_ERROR(run_.session().state().keep_residual(run_.step().residual()));
  if (!report_.stopped && config_.sample.tokens > 0) RETURN_IF_ERROR(sample());
  return std::move(report_);
}

// By all ranks at the same time, which get the same answer.
bool Trainer::wants_stop() {
  stop_is_asked_ = stop_is_asked_ || std::ranges::any_of(hooks_.requests, [](auto* requests) {
                     return requests->wants_stop();
                   });
  return stop_is_asked_;
}

// A snapshot that cannot be kept is no reason to end the run.
Status Trainer::keep_snapshot() {
  const bool is_wanted = std::ranges::any_of(
      hooks_.requests, [](session::RunRequests* requests) { return requests->wants_snapshot(); });
  if (!is_wanted) return ok_status();
  RETURN_IF_ERROR(commit());
  const Result<session::KeptSnapshot> kept = run_.save_snapshot();
  for (session::RunObserver* observer : hooks_.observers) observer->on_snapshot(kept);
  return ok_status();
}

// The bytes that cross for it are no step's.
Status Trainer::change_knobs() {
  const session::KnobChanges::Around around = {
      .before = [this] { runtime::add(bytes_before_, bytes().links(), -1); },
      .after = [this] { runtime::add(bytes_before_, bytes().links(), 1); }};
  return knobs_.before_step(position_.step, around);
}

// The work that the last step still has to do is its update's time.
Status Trainer::finish_step(Status (TrainingRun::*finish)()) {
  const TimeNs from_ns = run_.now_ns();
  RETURN_IF_ERROR((run_.*finish)());
  const double waited_seconds = seconds(run_.now_ns() - from_ns);
  report_.update_seconds += waited_seconds;
  report_.total_seconds += waited_seconds;
  return ok_status();
}

Status Trainer::set_batches() {
  const std::int64_t micro_steps = config_.batch.grad_accum_steps;
  const std::int64_t first = run_.ranks() == nullptr ? 0 : run_.ranks()->rank() * micro_steps;
  data::Sampler& sampler = run_.text().sampler();
  ASSIGN_OR_RETURN(
      const double divisor,
      sampler.train_divisor(position_.data_position, micro_steps * config_.batch.rank_count));
  for (std::int64_t m = 0; m < micro_steps; ++m) {
    const std::uint64_t position =
        position_.data_position + static_cast<std::uint64_t>((first + m) * config_.batch.batch);
    ASSIGN_OR_RETURN(model::TokenBatch batch, sampler.train_batch(position));
    batch.divisor = divisor;
    RETURN_IF_ERROR(model().set_batch(static_cast<int>(m), batch, model::BatchUse::training));
  }
  return ok_status();
}

// Over all ranks, in their order. One rank takes no memory for it.
Result<double> Trainer::mean_loss() const {
  const auto count = static_cast<int>(config_.batch.grad_accum_steps);
  if (run_.ranks() != nullptr) {
    std::vector<double> losses;
    for (int m = 0; m < count; ++m) losses.push_back(model().loss(m));
    ASSIGN_OR_RETURN(losses, run_.ranks()->gather(losses, "losses"));
    const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
    return sum / static_cast<double>(losses.size());
  }
  double sum = 0;
  for (int m = 0; m < count; ++m) sum += model().loss(m);
  return sum / count;
}

session::StepPlan Trainer::step_plan() const {
  session::StepPlan plan;
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
  const session::StepPlan plan = step_plan();
  StepOutcome outcome;
  const Status stepped = runtime().run(training_step(run_.step().context(), plan, outcome));
  const bool is_refused = !stepped.ok() && stepped.error().code() == ErrorCode::diverged;
  if (!stepped.ok() && !is_refused) return stepped;
  ASSIGN_OR_RETURN(const double loss, mean_loss());
  report_step(plan, outcome, loss);
  if (is_refused) return given_up(stepped.error().message(), position_.step, loss);
  position_ = outcome.position;
  if (report_.losses.size() == 1) {  // all of a step has been seen: later ones take no memory
    RETURN_IF_ERROR(settle());
    runtime::reserve_frames();
  }
  const std::string why_over = skipped_.why_over();
  if (why_over.empty()) return ok_status();
  RETURN_IF_ERROR(settle());
  return given_up(why_over, skipped_.applied_step(), loss);
}

// Nothing more is committed: what is may be all that is still good.
Error Trainer::given_up(const std::string& why, std::int64_t weights_step, double loss) {
  return diverged({.why = why,
                   .loss = loss,
                   .precision = config_.arithmetic.precision,
                   .weights_step = weights_step,
                   .committed_step = run_.session().state().store().committed().position.step,
                   .snapshot = newest_snapshot_before(config_.files.output, weights_step)});
}

void Trainer::report_step(const session::StepPlan& plan, const StepOutcome& outcome, double loss) {
  session::StepReport step;
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
  skipped_.note(step);
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
  run_.session().clock().record_step(step, outcome.start_ns);
  for (session::RunObserver* observer : hooks_.observers) observer->on_step(step);
}

void Trainer::finish_report() {
  report_.last_step = position_.step;
  report_.knobs_changed = knobs_.any_after(report_.first_step);
  report_.skipped_count = skipped_.count();
  report_.loss_scale = position_.loss_scale;
  report_.link_bytes = bytes().links();
  runtime::add(report_.link_bytes, bytes_before_, -1);
  const auto count = static_cast<double>(std::max<std::size_t>(1, report_.losses.size()));
  for (double* sum : {&report_.forward_seconds, &report_.backward_seconds, &report_.update_seconds,
                      &report_.total_seconds}) {
    *sum /= count;
  }
}

// Runs `work` as an operation on the compute thread, whose libtorch threads are warm.
template <typename Work>
Status Trainer::on_compute_thread(stages::Stage stage, Work work) {
  runtime::Operation operation;
  operation.runtime = &runtime();
  operation.label.stage = stage;
  operation.work.kind = runtime::WorkKind::function;
  operation.work.workers = runtime::Workers::compute;
  operation.work.function = [&work] { return work(); };
  const auto await_it = [](runtime::Operation awaited) -> runtime::Task<Status> {
    Status status = co_await awaited;
    co_return status;
  };
  return runtime().run(await_it(operation));
}

// The parameters of the last step are all up. The loss of some batches is none of all: whoever asks
// the run to stop gets none.
Status Trainer::validate() {
  const std::int64_t count =
      std::min(run_.text().sampler().validation_batch_count(), config_.validation.batches);
  if (count == 0) return ok_status();
  RETURN_IF_ERROR(settle());
  const bool comes_by_layer = run_.built().device != nullptr ||
                              run_.plan().options.streams_parameters() ||
                              run_.plan().share.is_gathered();
  ASSIGN_OR_RETURN(const double divisor, run_.text().sampler().validation_divisor(count));
  double sum = 0;
  std::optional<std::int64_t> right;
  for (std::int64_t batch = 0; batch < count; ++batch) {
    if (wants_stop()) {
      report_.left_out.emplace_back("validation");
      return ok_status();
    }
    ASSIGN_OR_RETURN(const double loss, comes_by_layer ? validation_loss_by_layer(batch, divisor)
                                                       : validation_loss(batch, divisor));
    sum += loss;
    if (const std::optional<std::int64_t> more = model().right_answers(0))
      right = right.value_or(0) + *more;
    tell_of_work("validation, batch", batch + 1, count);
  }
  const session::ValidationReport& report = report_.validation.emplace(
      session::ValidationReport{.step = position_.step,
                                .ts = run_.now_ns(),
                                .loss = sum / static_cast<double>(count),
                                .tokens = count * config_.batch.batch * config_.batch.sequence});
  const std::int64_t windows = count * run_.text().sampler().validation_rows();
  if (right)
    report_.validation->accuracy = static_cast<double>(*right) / static_cast<double>(windows);
  for (session::RunObserver* observer : hooks_.observers) observer->on_validation(report);
  return ok_status();
}

Result<double> Trainer::validation_loss(std::int64_t batch, double divisor) {
  double loss = 0;
  RETURN_IF_ERROR(on_compute_thread(stages::Stage::validate, [&]() -> Status {
    ASSIGN_OR_RETURN(model::TokenBatch tokens, run_.text().sampler().validation_batch(batch));
    tokens.divisor = divisor;
    ASSIGN_OR_RETURN(loss, model::evaluate(model(), tokens));
    return ok_status();
  }));
  return loss;
}

// The bytes that cross for it are no step's, and not among the report's bytes a step.
Result<double> Trainer::validation_loss_by_layer(std::int64_t batch, double divisor) {
  runtime::add(bytes_before_, bytes().links(), -1);
  ASSIGN_OR_RETURN(model::TokenBatch tokens, run_.text().sampler().validation_batch(batch));
  tokens.divisor = divisor;
  RETURN_IF_ERROR(model().set_batch(0, tokens, model::BatchUse::validation));
  RETURN_IF_ERROR(runtime().run(validation_pass(run_.step().context())));
  runtime::add(bytes_before_, bytes().links(), 1);
  return model().loss(0);
}

Status Trainer::sample() {
  if (!run_.built().write_text || !run_.text().why_no_sample().empty()) return ok_status();
  const bool comes_by_layer =
      run_.plan().options.streams_parameters() || run_.plan().share.is_gathered();
  ASSIGN_OR_RETURN(const std::unique_ptr<model::TextWriter> text,
                   run_.built().write_text(run_.text().sample_options(config_)));
  while (!text->is_done()) {
    if (wants_stop()) {
      report_.left_out.emplace_back("the sample text");
      return ok_status();
    }
    RETURN_IF_ERROR(comes_by_layer ? runtime().run(text_pass(run_.step().context(), *text))
                                   : write_some(*text));
    tell_of_work("the sample text, token", text->written_count(), config_.sample.tokens);
  }
  report_.sample = text->text();
  return ok_status();
}

void Trainer::tell_of_work(const char* what, std::int64_t done, std::int64_t count) {
  for (session::RunObserver* observer : hooks_.observers) observer->on_work(what, done, count);
}

// A few tokens an operation, so that a record has not one for each.
Status Trainer::write_some(model::TextWriter& text) {
  constexpr int kTokens = 16;
  return on_compute_thread(stages::Stage::sample, [&]() -> Status {
    for (int i = 0; i < kTokens && !text.is_done(); ++i) {
      for (const LayerId layer : all_ids<LayerId>(run_.plan().layout.layer_count())) {
        RETURN_IF_ERROR(text.forward(layer));
      }
    }
    return ok_status();
  });
}

}  // namespace

double TrainReport::last_loss() const {
  if (validation && validation->step == last_step) return validation->loss;
  return losses.empty() ? 0 : losses.back();
}

bool TrainReport::can_go_on() const { return std::isfinite(last_loss()); }

Result<TrainReport> train(TrainingRun& run, const session::RunHooks& hooks,
                          std::span<const session::PlannedChange> changes) {
  return Trainer(run, hooks, changes).train();
}

}  // namespace sluice::train
