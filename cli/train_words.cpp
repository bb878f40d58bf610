#include "cli/train_words.h"

#include "base/figure_text.h"
#include "base/shell_quoted.h"
#include "cli/program.h"
#include "cli/train_arguments.h"
#include "core/plan/lr_schedule.h"
#include "core/plan/run_plan.h"
#include "core/session/open_run.h"
#include "core/session/run_facts.h"
#include "core/session/run_state.h"
#include "core/train/trainer.h"
#include "core/train/training_run.h"
#include "core/weights/adapter_checkpoint.h"
#include "core/weights/checkpoint.h"
#include "core/weights/optimizer_checkpoint.h"

namespace sluice::cli {

std::string TrainWords::header() const {
  return fmt::format(
             "{}: {} · {}\n{} {} in {}\n", run.plan().shape.name, parameter_words(),
             session::mode_line(config, session::ModeClock::of_settings, run.hardware()),
             arguments.resume ? "Going on from" : "Writing",
             arguments.resume ? fmt::format("step {}", committed_step()) : initial_state_words(),
             config.files.state_directory) +
         next_rate_line() + format_line() + resharded_line() + recipe_lines();
}

std::string TrainWords::parameter_words() const {
  const model::ModelShape& shape = run.plan().shape;
  const auto count = [](const model::FlatLayout& layout) {
    return format_count(static_cast<double>(layout.parameter_count));
  };
  if (!shape.has_adapters()) return fmt::format("{} parameters", count(run.plan().layout));
  return fmt::format("{} parameters of adapters (rank {}, {} linear layers) on {} of {} ({})",
                     count(run.plan().layout), shape.lora.rank, shape.lora.modules.size(),
                     count(shape.base_layout()), run.origin().base->folder(),
                     run.origin().base->description());
}

std::string TrainWords::initial_state_words() const {
  const weights::Checkpoint* const from = run.origin().weights.get();
  const weights::OptimizerCheckpoint* const moments = run.origin().moments.get();
  std::string words = "the initial state";
  if (const weights::AdapterCheckpoint* adapter = run.origin().adapter.get()) {
    words += fmt::format(", adapters from {} ({}),", adapter->folder(), adapter->description());
  }
  if (from != nullptr) {
    words += fmt::format(", weights from {} ({}),", from->folder(), from->description());
  }
  if (moments != nullptr) {
    words += fmt::format("{} optimizer from {} ({}),", words.ends_with(',') ? "" : ",",
                         moments->folder(), moments->description());
  }
  return words;
}

std::int64_t TrainWords::committed_step() const {
  return run.session().state().store().committed().position.step;
}

// A schedule may go on otherwise than it was begun.
std::string TrainWords::next_rate_line() const {
  if (!arguments.resume) return "";
  return fmt::format("The learning rate of step {} is {:.4g}\n", committed_step() + 1,
                     plan::learning_rate(plan::lr_schedule_of(config), committed_step()));
}

// The settings of this resume that differ from those of the steps before.
std::string TrainWords::recipe_lines() const {
  std::string lines;
  for (const settings::KnobChange& change : run.session().state().recipe_changes()) {
    lines += fmt::format("{} was {}, is {} from step {} on\n", change.knob, change.from, change.to,
                         committed_step() + 1);
  }
  return lines;
}

// Where the state was kept in another format.
std::string TrainWords::format_line() const {
  const std::optional<StateFormat>& before = run.origin().format_before;
  if (!before) return "";
  const StateFormat& format = config.offload.state_format;
  return fmt::format("The state was {}, and is now {}: its numbers are {}\n", format_text(*before),
                     format_text(format),
                     format.kind == StateFormatKind::compact ? "rounded" : "the same");
}

// Where the state was that of other ranks.
std::string TrainWords::resharded_line() const {
  const train::Resharded& resharded = run.origin().resharded;
  if (!resharded.has_changed) return "";
  return fmt::format("The state was {}, and is now {} on {} {}; its bits are the same\n",
                     resharded.from, run.plan().share.is_sharded() ? "in parts" : "whole",
                     rank_count, rank_count == 1 ? "rank" : "ranks");
}

answers::GoingOn TrainWords::going_on(const train::TrainReport& report) const {
  if (!report.can_go_on()) return {};
  if (report.stopped) return {resume_command({.steps = config.schedule.steps}), ""};
  const plan::FurtherSteps further = plan::further_steps(config, report.last_step);
  return {resume_command(further), schedule_words(further, report.last_step)};
}

// "": it goes on as it was begun.
std::string TrainWords::schedule_words(const plan::FurtherSteps& further,
                                       std::int64_t last_step) const {
  if (further.schedule_steps == 0) return "";
  const settings::ScheduleConfig& schedule = config.schedule;
  if (!further.begins_anew && last_step < schedule.warmup_steps) {
    return fmt::format(
        "The run was shorter than its warm-up: the learning rate goes on rising to step {}, and "
        "stays at min_lr={:.4g} then, for which the command below sets schedule_steps={}.",
        schedule.warmup_steps, schedule.min_lr, further.schedule_steps);
  }
  if (!further.begins_anew) {
    return fmt::format(
        "The schedule has ended: the learning rate stays at min_lr={:.4g}, for which the command "
        "below sets schedule_steps={}.",
        further.next_lr, further.schedule_steps);
  }
  return fmt::format(
      "The schedule has ended, and at a learning rate of 0 nothing is learnt. The command below "
      "makes it longer, with schedule_steps={}: the rate rises again, to {:.4g} in step {}, so "
      "the losses are not those of a run that was begun with so many steps.",
      further.schedule_steps, further.next_lr, last_step + 1);
}

// All that was asked for this time.
std::string TrainWords::resume_command(const plan::FurtherSteps& further) const {
  std::string text = program_of_ranks(rank_count) + " train ";
  text += arguments.like.empty() ? shell_quoted(arguments.run_path)
                                 : "--like " + shell_quoted(arguments.like);
  text += " --resume";
  if (!arguments.model.empty()) text += " --model " + shell_quoted(arguments.model);
  for (const std::string& setting : arguments.overrides) {
    const bool is_replaced = setting.starts_with("steps=") ||
                             (further.schedule_steps > 0 && setting.starts_with("schedule_steps="));
    if (!is_replaced) text += " --set " + shell_quoted(setting);
  }
  if (further.schedule_steps > 0) {
    text += fmt::format(" --set schedule_steps={}", further.schedule_steps);
  }
  if (!arguments.sharding.empty()) text += " --shard " + shell_quoted(arguments.sharding);
  // As it is now, whatever --at or somebody at the socket made of it.
  for (const settings::KnobChange& change : settings::knob_changes(config, run.config())) {
    text += " --set " + shell_quoted(change.knob + "=" + change.to);
  }
  if (!arguments.database.empty()) text += " --db " + shell_quoted(arguments.database);
  return text + fmt::format(" --steps {}", further.steps);
}

// With what there is to go on from, if that is still there.
Status TrainWords::how_it_stopped(const Error& error) const {
  if (!run.session().state().store().check_files().ok())
    return error.with_context("the run stopped");
  if (run.session().state().store().committed().subgroups.empty()) {
    return error.with_context("nothing is committed yet; begin again, without --resume");
  }
  // A run that has diverged says itself whether a resume can help.
  const bool can_resume = error.code() != ErrorCode::diverged;
  return error.with_context(fmt::format("the run stopped; step {} is committed in {}{}",
                                        committed_step(), config.files.state_directory,
                                        can_resume ? " (go on with --resume)" : ""));
}

}  // namespace sluice::cli
