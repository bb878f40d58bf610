#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "base/clock.h"
#include "base/log.h"
#include "base/refusal.h"
#include "base/shell_quoted.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/rank_run.h"
#include "cli/run_argument.h"
#include "cli/terminal.h"
#include "cli/train_report.h"
#include "core/model/model_library.h"
#include "core/plan/knob_change.h"
#include "core/plan/lr_schedule.h"
#include "core/session/live_control.h"
#include "core/session/run_recording.h"
#include "core/train/clock_offset.h"
#include "core/train/divergence.h"
#include "core/train/rank_digest.h"
#include "core/train/rank_requests.h"
#include "core/train/trainer.h"
#include "core/tune/like_run.h"
#include "core/tune/replanner.h"
#include "hls/host/xrt_devices.h"

namespace sluice::cli {
namespace {

struct TrainArguments {
  std::string run_path;  // empty: --like
  std::string like;      // a recorded run's database
  std::vector<std::string> overrides;
  std::string sharding;
  std::vector<std::string> changes;
  std::string database;
  std::int64_t steps = 0;
  bool resume = false;
  bool json = false;
  bool settings = false;
};

// Three scopes are a setting each; a word is that of all three.
std::vector<std::string> sharding_settings(const std::string& sharding) {
  constexpr std::array kKeys = {"shard_parameters", "shard_gradients", "shard_state"};
  std::vector<std::string> scopes;
  for (std::size_t begin = 0; begin <= sharding.size();) {
    const std::size_t end = std::min(sharding.find(',', begin), sharding.size());
    scopes.push_back(sharding.substr(begin, end - begin));
    begin = end + 1;
  }
  if (scopes.size() != kKeys.size()) scopes.assign(kKeys.size(), sharding);
  std::vector<std::string> settings;
  for (std::size_t k = 0; k < kKeys.size(); ++k) {
    settings.push_back(std::string(kKeys[k]) + "=" + scopes[k]);
  }
  return settings;
}

// A run like another writes beside it, where nothing else is said.
Status choose_output(TrainArguments& arguments) {
  if (arguments.like.empty() || tune::says_output(arguments.overrides)) return ok_status();
  if (arguments.resume) {
    return make_error(ErrorCode::config,
                      "--like {} --resume: which run goes on? Name its folder with --set "
                      "output=FOLDER, or its run file in place of --like",
                      arguments.like);
  }
  ASSIGN_OR_RETURN(const std::string output, of_database(tune::output_beside(arguments.like)));
  if (!output.empty()) arguments.overrides.push_back("output=" + output);
  return ok_status();
}

Result<settings::RunConfig> config_of(TrainArguments& arguments) {
  RETURN_IF_ERROR(choose_output(arguments));
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.database.empty()) overrides.push_back("db=" + arguments.database);
  if (!arguments.sharding.empty()) {
    for (const std::string& scope : sharding_settings(arguments.sharding)) {
      overrides.push_back(scope);
    }
  }
  if (arguments.steps > 0) overrides.push_back(fmt::format("steps={}", arguments.steps));
  if (!arguments.like.empty()) return of_database(tune::config_like(arguments.like, overrides));
  return settings::load_run_config(arguments.run_path, overrides);
}

// "10:density=0.1" each. What they say is checked before the run begins.
Result<std::vector<session::PlannedChange>> changes_of(const TrainArguments& arguments,
                                                       settings::RunConfig config) {
  std::vector<session::PlannedChange> changes;
  for (const std::string& text : arguments.changes) {
    const std::size_t colon = text.find(':');
    std::int64_t step = 0;
    const auto parsed =
        std::from_chars(text.data(), text.data() + std::min(colon, text.size()), step);
    if (colon == std::string::npos || parsed.ec != std::errc() ||
        parsed.ptr != text.data() + colon || step < 0) {
      return make_error(ErrorCode::config, "--at {}: expected STEP:key=value, as in 10:density=0.1",
                        text);
    }
    changes.push_back({step, {text.substr(colon + 1)}});
  }
  std::ranges::stable_sort(changes, {}, &session::PlannedChange::step);
  for (const session::PlannedChange& change : changes) {
    ASSIGN_OR_RETURN(
        config, settings::with_knobs(config, change.settings, fmt::format("--at {}", change.step)));
  }
  return changes;
}

class TrainCommand {
 public:
  explicit TrainCommand(const TrainArguments& arguments) : arguments_(arguments) {}

  // Gives the exit code.
  int run() {
    // The ranks' patience is a setting, but what is wrong with settings is said as a rank.
    const bool is_chosen = !arguments_.like.empty() && !tune::says_output(arguments_.overrides);
    Result<settings::RunConfig> config = config_of(arguments_);
    if (config.ok()) config_ = *std::move(config);
    if (is_chosen) {
      beside_ =
          fmt::format("A run like {}, written to {}\n", arguments_.like, config_.files.output);
    }
    auto ranks = RankRun::open(static_cast<TimeNs>(config_.shards.patience * 1e9));
    if (!ranks.ok()) return report_error(ranks.error());
    ranks_ = *std::move(ranks);
    return ranks_->close(run_as_rank(config.ok() ? ok_status() : Status(config.error())));
  }

 private:
  Status run_as_rank(const Status& configured) {
    RETURN_IF_ERROR(open(configured));
    if (is_done_already()) return report_nothing_to_do();
    RETURN_IF_ERROR(open_record());
    Status trained = at_refusal_border([this] { return train_and_report(); });
    return close_recording(std::move(trained));
  }

  // The first rank speaks for all.
  bool is_told() const { return ranks_->is_first(); }

  // What the settings of one rank are refused for, all hear before anything is made.
  Status open(const Status& configured) {
    const Result<model::ModelFactory> factory = open_parts(configured);
    RETURN_IF_ERROR(ranks_->agreed(factory.ok() ? ok_status() : Status(factory.error())));
    train::TrainingRun::Request request;
    request.config = &config_;
    request.factory = &*factory;
    request.start = start();
    request.devices = devices_.get();
    request.ranks = ranks_->ranks();
    request.recorder = recording_->recorder();
    request.stops = [this] { return is_interrupted() || (live_ && live_->wants_stop()); };
    request.on_plan = [this](const plan::MemoryPlan& plan) { say(plan::describe(plan)); };
    ASSIGN_OR_RETURN(run_, train::TrainingRun::open(request));
    config_.shards = run_->config().shards;  // as chosen
    return ok_status();
  }

  Result<model::ModelFactory> open_parts(const Status& configured) {
    RETURN_IF_ERROR(configured);
    if (!beside_.empty()) say(beside_);
    if (is_told()) {
      for (const std::string& warning : config_.warnings) log_warning(warning);
    }
    RETURN_IF_ERROR(ranks_->take_part(config_));
    ASSIGN_OR_RETURN(changes_, changes_of(arguments_, config_));
    ASSIGN_OR_RETURN(recording_, session::RunRecording::prepare(config_));
    ASSIGN_OR_RETURN(const model::ModelLibrary* const models, model::load_model_library());
    RETURN_IF_ERROR(open_devices());
    return models->factory(config_.resources.device, config_.resources.accelerator_memory_bytes,
                           static_cast<int>(config_.resources.threads),
                           recording_->launch_region());
  }

  // Hardware is opened here, since core knows none. With method=host, too: it may be turned to csd.
  Status open_devices() {
    if (config_.offload.backend == settings::Backend::emulated) return ok_status();
    const double patience_ns = config_.offload.device_patience * 1e9;
    ASSIGN_OR_RETURN(devices_,
                     hls_host::open_xrt_devices({.xclbin = config_.offload.xclbin,
                                                 .rule = config_.update.rule,
                                                 .patience_ns = static_cast<TimeNs>(patience_ns)}));
    return ok_status();
  }

  // Asked before the database is opened: a run that takes no step has nothing to record, and the
  // record of the steps before stays as it is.
  bool is_done_already() const {
    return start() == session::StartFrom::last_commit &&
           store().committed().position.step >= config_.schedule.steps;
  }

  Status report_nothing_to_do() {
    train::TrainReport report;
    report.first_step = report.last_step = store().committed().position.step;
    if (arguments_.json) {
      RETURN_IF_ERROR(make_json(report));
      if (is_told()) print_lines(json_ + "\n");
      return ok_status();
    }
    if (!is_told()) return ok_status();
    print_lines(fitted(
        fmt::format(
            "Nothing to do: step {} is already committed in {}. Ask for more with --steps.\n",
            report.last_step, config_.files.state_directory),
        terminal_columns()));
    return ok_status();
  }

  Status open_record() {
    session::RunRecording::Facts facts{.start = start(), .hardware = run_->hardware()};
    RETURN_IF_ERROR(add_facts(facts.meta));
    const Status opened = recording_->open(run_->session(), facts);
    if (!opened.ok()) return wrong_database(opened.error());
    RETURN_IF_ERROR(record_clock_offset(rundb::OffsetAt::begin));
    if (is_told()) {
      live_ = session::LiveControl::start_or_warn(
          *run_, [recording = recording_.get()](bool watched) { recording->set_watched(watched); });
    }
    return ok_status();
  }

  // What the record says of the accelerator and of the ranks.
  Status add_facts(std::vector<rundb::MetaRow>& meta) {
    if (recording_->recorder() == nullptr) return ok_status();
    if (const model::ComputeDevice* device = run_->built().device.get(); device != nullptr) {
      meta.push_back({"accelerator", device->description()});
      meta.push_back({"accelerator_memory_cap", fmt::format("{}", device->memory_use().cap_bytes)});
    }
    train::Ranks* const ranks = ranks_->ranks();
    if (ranks == nullptr) return ok_status();
    meta.push_back({"rank", fmt::format("{}", ranks->rank())});
    meta.push_back({"ranks", fmt::format("{}", ranks->count())});
    const shard::RankShare& share = run_->plan().share;
    if (share.is_sharded()) {
      meta.push_back({"sharding", shard::triple_text(share.triple)});
      meta.push_back({"share", state::share_text(share.share)});
    }
    ASSIGN_OR_RETURN(std::string run_id, ranks_->run_id());
    meta.push_back({"run_id", std::move(run_id)});
    return ok_status();
  }

  // All ranks record or none does, since they have the same settings.
  Status record_clock_offset(rundb::OffsetAt at) {
    collect::Collector* const collector = recording_->collector();
    if (collector == nullptr || ranks_->ranks() == nullptr) return ok_status();
    ASSIGN_OR_RETURN(const train::ClockOffset offset,
                     train::measure_clock_offset(*ranks_->ranks(), monotonic_now_ns));
    collector->add(rundb::ClockOffsetRow{
        .at = at, .ts = offset.ts, .offset = offset.offset_ns, .bound = offset.bound_ns});
    return ok_status();
  }

  Status train_and_report() {
    say(header());
    RETURN_IF_ERROR(run_->prepare(start()));
    Progress progress(arguments_.json || !is_told() ? ProgressStyle::none
                      : isatty(STDERR_FILENO) == 1  ? ProgressStyle::bar
                                                    : ProgressStyle::lines);
    const TimeNs start_ns = run_->now_ns();
    session::RunHooks hooks{{&progress}, {&progress}};
    recording_->add_observers(hooks);
    if (config_.offload.replan && is_told()) start_replanning(hooks);
    if (live_) {
      hooks.observers.push_back(live_.get());
      hooks.requests.push_back(live_.get());
    }
    std::optional<train::RankRequests> agreed;
    if (train::Ranks* ranks = ranks_->ranks(); ranks != nullptr) {
      agreed.emplace(*ranks, hooks.requests);
      hooks.requests = {&*agreed};
      hooks.observers.push_back(&*agreed);
    }
    Result<train::TrainReport> report = train::train(*run_, hooks, changes_);
    progress.finish();
    recording_->record_rest();
    if (!report.ok()) return std::move(report).error();
    RETURN_IF_ERROR(store().check_files());  // what is said below is true
    const TimeNs dur_ns = run_->now_ns() - start_ns;
    RETURN_IF_ERROR(record_clock_offset(rundb::OffsetAt::end));
    if (arguments_.json) {
      RETURN_IF_ERROR(make_json(*report));
    } else if (is_told()) {
      const std::string text = train_report_text(*run_, *report, dur_ns, going_on(*report));
      print_lines(fitted(text, terminal_columns()));
    }
    return report->can_go_on() ? ok_status() : Status(ruined(*report));
  }

  // It came to its last step, or was stopped, with weights that are good for nothing.
  Error ruined(const train::TrainReport& report) const {
    return train::diverged(
        {.why = fmt::format("no further step can help after step {}", report.last_step),
         .loss = report.last_loss(),
         .precision = config_.arithmetic.precision,
         .weights_step = report.last_step,
         .committed_step = report.last_step,
         .snapshot = train::newest_snapshot_before(config_.files.output, report.last_step)});
  }

  // It is told of operations as long as the run has any.
  void start_replanning(session::RunHooks& hooks) {
    const auto run_now = [run = run_.get()] {
      tune::ReplanRequest now{.run = run->plan()};
      now.memory.computing = run->live_plan().model_memory;
      now.memory.devices_have_own = run->config().offload.backend == settings::Backend::xrt;
      const plan::MemoryPlan& memory = run->session().memory().host;
      now.memory.host = {memory.cap_bytes, memory.cap_source, memory.cap_what};
      now.memory.is_here = true;
      return now;
    };
    replanner_ = std::make_unique<tune::Replanner>(run_->plan().geometry.device_count, run_now,
                                                   [run = run_.get()] { return run->now_ns(); });
    run_->session().runtime().add_sink(&replanner_->sink());
    hooks.observers.push_back(replanner_.get());
    hooks.requests.push_back(replanner_.get());
  }

  Status make_json(const train::TrainReport& report) {
    ASSIGN_OR_RETURN(const std::string digest, state_digest());
    json_ = train_report_json(*run_, report, digest, going_on(report));
    return ok_status();
  }

  // All ranks' state together.
  Result<std::string> state_digest() {
    if (ranks_->ranks() != nullptr) {
      return train::digest_of_ranks(*ranks_->ranks(), run_->plan().share, run_->plan().layout,
                                    store());
    }
    ASSIGN_OR_RETURN(const state::StateDigest digest,
                     state::digest_state(store(), nullptr, nullptr));
    return digest.digest;
  }

  // The database is closed whatever became of the run; what the run says goes first.
  Status close_recording(Status trained) {
    if (live_) live_->close(trained.ok() ? "the run has ended" : trained.error().message());
    recording_->close();
    if (!json_.empty() && is_told()) print_lines(json_ + "\n");
    return trained.ok() ? ok_status() : how_it_stopped(trained.error());
  }

  // With what there is to go on from, if that is still there.
  Status how_it_stopped(const Error& error) const {
    if (!store().check_files().ok()) return error.with_context("the run stopped");
    if (store().committed().subgroups.empty()) {
      return error.with_context("nothing is committed yet; begin again, without --resume");
    }
    // A run that has diverged says itself whether a resume can help.
    const bool can_resume = error.code() != ErrorCode::diverged;
    return error.with_context(fmt::format("the run stopped; step {} is committed in {}{}",
                                          committed_step(), config_.files.state_directory,
                                          can_resume ? " (go on with --resume)" : ""));
  }

  std::string header() const {
    return fmt::format(
               "{}: {} parameters · {}\n{} {} in {}\n", run_->plan().shape.name,
               format_count(static_cast<double>(run_->plan().layout.parameter_count)),
               session::mode_line(config_, session::ModeClock::of_settings, run_->hardware()),
               arguments_.resume ? "Going on from" : "Writing",
               arguments_.resume ? fmt::format("step {}", committed_step()) : "the initial state",
               config_.files.state_directory) +
           next_rate_line() + resharded_line() + recipe_lines();
  }

  state::StateStore& store() const { return run_->session().state().store(); }
  std::int64_t committed_step() const { return store().committed().position.step; }

  // A schedule may go on otherwise than it was begun.
  std::string next_rate_line() const {
    if (!arguments_.resume) return "";
    return fmt::format("The learning rate of step {} is {:.4g}\n", committed_step() + 1,
                       plan::learning_rate(plan::lr_schedule_of(config_), committed_step()));
  }

  // What this resume learns with that the steps before did not.
  std::string recipe_lines() const {
    std::string lines;
    for (const settings::KnobChange& change : run_->session().state().recipe_changes()) {
      lines += fmt::format("{} was {}, is {} from step {} on\n", change.knob, change.from,
                           change.to, committed_step() + 1);
    }
    return lines;
  }

  // Where the state was that of other ranks.
  std::string resharded_line() const {
    const train::Resharded& resharded = run_->resharded();
    if (!resharded.has_changed) return "";
    return fmt::format("The state was {}, and is now {} on {} {}; its bits are the same\n",
                       resharded.from, run_->plan().share.is_sharded() ? "in parts" : "whole",
                       ranks_->count(), ranks_->count() == 1 ? "rank" : "ranks");
  }

  GoingOn going_on(const train::TrainReport& report) const {
    if (!report.can_go_on()) return {};
    if (report.stopped) return {resume_command({.steps = config_.schedule.steps}), ""};
    const plan::FurtherSteps further = plan::further_steps(config_, report.last_step);
    return {resume_command(further), schedule_words(further, report.last_step)};
  }

  // "": it goes on as it was begun.
  std::string schedule_words(const plan::FurtherSteps& further, std::int64_t last_step) const {
    if (further.schedule_steps == 0) return "";
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
  std::string resume_command(const plan::FurtherSteps& further) const {
    std::string text = program_of_ranks(ranks_->count()) + " train ";
    text += arguments_.like.empty() ? shell_quoted(arguments_.run_path)
                                    : "--like " + shell_quoted(arguments_.like);
    text += " --resume";
    for (const std::string& setting : arguments_.overrides) {
      const bool is_replaced =
          setting.starts_with("steps=") ||
          (further.schedule_steps > 0 && setting.starts_with("schedule_steps="));
      if (!is_replaced) text += " --set " + shell_quoted(setting);
    }
    if (further.schedule_steps > 0) {
      text += fmt::format(" --set schedule_steps={}", further.schedule_steps);
    }
    if (!arguments_.sharding.empty()) text += " --shard " + shell_quoted(arguments_.sharding);
    // As it is now, whatever --at or somebody at the socket made of it.
    for (const settings::KnobChange& change : settings::knob_changes(config_, run_->config())) {
      text += " --set " + shell_quoted(change.knob + "=" + change.to);
    }
    if (!arguments_.database.empty()) text += " --db " + shell_quoted(arguments_.database);
    return text + fmt::format(" --steps {}", further.steps);
  }

  void say(const std::string& text) const {
    if (!arguments_.json && is_told()) print_lines(fitted(text + "\n", terminal_columns()));
    flush_lines();
  }

  session::StartFrom start() const {
    return arguments_.resume ? session::StartFrom::last_commit : session::StartFrom::new_state;
  }

  TrainArguments arguments_;  // with the output that was chosen
  std::string beside_;        // what to say of that; "": it was said
  std::unique_ptr<RankRun> ranks_;
  settings::RunConfig config_;
  std::vector<session::PlannedChange> changes_;
  std::unique_ptr<session::RunRecording> recording_;
  std::unique_ptr<csd::DeviceFactory> devices_;  // null: emulated ones; outlives the run
  std::unique_ptr<tune::Replanner> replanner_;   // null: replan=false; outlives the run
  std::unique_ptr<train::TrainingRun> run_;
  std::unique_ptr<session::LiveControl> live_;
  std::string json_;
};

}  // namespace

void add_train_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command =
      app.add_subcommand("train", "Train a model with its optimizer state on storage");
  CLI::Option* run =
      command->add_option("run", arguments->run_path, "the run's settings (RUN.toml)");
  take_database_of(
      *command
           ->add_option("--like", arguments->like,
                        "instead of RUN.toml: all settings of a recorded run (RUN.db), knobs as "
                        "they were last; it writes beside that run, into FOLDER-2 beside FOLDER, "
                        "unless --set output=FOLDER says where")
           ->excludes(run));
  command->add_option("--shard", arguments->sharding,
                      "of several ranks: parameters, gradients and state over 4x1,4x1,8x1 ranks "
                      "(in a node x nodes), or a scheme, such as zero1, or auto");
  command->add_option("--set", arguments->overrides, "key=value: change a setting; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--at", arguments->changes,
                   "STEP:key=value: change a knob once STEP steps are committed; may be "
                   "repeated")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--db", arguments->database, "the run database (default: OUTPUT/run.db)");
  command->add_option("--steps", arguments->steps, "train until this many steps are committed")
      ->check(at_least(1));
  command->add_flag("--resume", arguments->resume, "go on from the last committed step");
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->add_flag("--settings", arguments->settings,
                    "list every setting, with range and default");
  command->footer(
      "Ctrl-C finishes the step and commits; a second one leaves at once, and the state is still "
      "good.\n"
      "Examples:\n"
      "  sluice train sample_models/runs/tiny.toml\n"
      "  sluice train sample_models/runs/tiny.toml --set method=host --set devices=1 \\\n"
      "      --steps 20\n"
      "  sluice train sample_models/runs/tiny.toml --at 50:pipeline=serial \\\n"
      "      --at 100:method=host\n"
      "  sluice train sample_models/runs/tiny.toml --resume --steps 400\n"
      "  sluice train --like out/tiny/run.db --set buffers=6 --set output=out/tiny-2\n"
      "  mpirun -n 4 --mca mpi_yield_when_idle 1 sluice train \\\n"
      "      sample_models/runs/tiny.toml --shard zero1");
  command->callback([arguments, &exit_code] {
    if (arguments->settings) {
      print_lines(settings::describe_settings());
      return;
    }
    if (arguments->run_path.empty() && arguments->like.empty()) {
      exit_code = report_error(make_error(ErrorCode::config,
                                          "which run? Name its file, for example: sluice train "
                                          "sample_models/runs/tiny.toml"));
      return;
    }
    install_interrupt_handler();
    outlive_readers(arguments->json ? Lines::answer : Lines::progress);
    exit_code = TrainCommand(*arguments).run();
  });
}

}  // namespace sluice::cli
