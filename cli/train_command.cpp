#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "base/clock.h"
#include "base/log.h"
#include "base/refusal.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/rank_run.h"
#include "cli/run_argument.h"
#include "cli/terminal.h"
#include "cli/train_arguments.h"
#include "cli/train_report.h"
#include "cli/train_words.h"
#include "core/model/model_library.h"
#include "core/plan/knob_change.h"
#include "core/plan/run_plan.h"
#include "core/runtime/runtime.h"
#include "core/session/live_control.h"
#include "core/session/open_run.h"
#include "core/session/run_facts.h"
#include "core/session/run_memory.h"
#include "core/session/run_observer.h"
#include "core/session/run_recording.h"
#include "core/session/run_state.h"
#include "core/train/clock_offset.h"
#include "core/train/divergence.h"
#include "core/train/rank_digest.h"
#include "core/train/rank_requests.h"
#include "core/train/ranks.h"
#include "core/train/trainer.h"
#include "core/train/training_run.h"
#include "core/tune/like_run.h"
#include "core/tune/replan.h"
#include "core/tune/replanner.h"
#include "core/weights/adapter_checkpoint.h"
#include "core/weights/checkpoint.h"
#include "core/weights/model_folder.h"
#include "core/weights/optimizer_checkpoint.h"
#include "hls/host/xrt_devices.h"
#include "profiler/collect/collector.h"
#include "profiler/watch/metrics_server.h"

namespace sluice::cli {
namespace {

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

  // All ranks hear why the settings of one are refused, before anything is made.
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
    if (const auto& adapter = run_->origin().adapter; is_told() && adapter != nullptr) {
      for (const std::string& note : adapter->notes()) log_warning(note);
    }
    return ok_status();
  }

  Result<model::ModelFactory> open_parts(const Status& configured) {
    RETURN_IF_ERROR(configured);
    if (!beside_.empty()) say(beside_);
    if (is_told()) {
      for (const std::string& warning : config_.warnings) log_warning(warning);
      ASSIGN_OR_RETURN(const std::vector<std::string> notes,
                       weights::training_notes(config_.files.model));
      for (const std::string& note : notes) log_warning(note);
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
    ASSIGN_OR_RETURN(
        devices_, hls_host::open_xrt_devices({.xclbin = config_.offload.xclbin,
                                              .rule = config_.update.rule,
                                              .is_split = config_.offload.state_format.is_split(),
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
        words().format_line() +
            fmt::format(
                "Nothing to do: step {} is already committed in {}. Ask for more with --steps.\n",
                report.last_step, config_.files.state_directory),
        terminal_columns()));
    return ok_status();
  }

  Status open_record() {
    session::RunRecording::Facts facts{.start = start(), .hardware = run_->hardware()};
    if (const auto& from = run_->origin().weights; from != nullptr) {
      facts.meta.push_back({"weights", from->folder()});
    }
    if (const auto& base = run_->origin().base; base != nullptr) {
      facts.meta.push_back({"lora_base", base->folder()});
    }
    if (const auto& from = run_->origin().adapter; from != nullptr) {
      facts.meta.push_back({"lora_adapter_from", from->folder()});
    }
    if (const auto& from = run_->origin().moments; from != nullptr) {
      facts.meta.push_back({"optimizer_from", from->folder()});
    }
    RETURN_IF_ERROR(add_facts(facts.meta));
    const Status opened = recording_->open(run_->session(), facts);
    if (!opened.ok()) return wrong_database(opened.error());
    RETURN_IF_ERROR(record_clock_offset(rundb::OffsetAt::begin));
    if (is_told()) {
      live_ = session::LiveControl::start_or_warn(
          *run_, [recording = recording_.get()](bool watched) { recording->set_watched(watched); },
          recording_->recorder());
    }
    return ranks_->agreed(start_metrics());
  }

  // Once the record is there, since that is what they are read from.
  Status start_metrics() {
    if (arguments_.metrics_port < 0 || !is_told()) return ok_status();
    if (recording_->recorder() == nullptr) {
      return make_error(ErrorCode::config,
                        "--metrics {}: with record=off there is no record to read them from; use "
                        "--set record=steps",
                        arguments_.metrics_port);
    }
    ASSIGN_OR_RETURN(metrics_,
                     watch::MetricsServer::start(config_.files.database, arguments_.metrics_port));
    log_info("metrics at " + metrics_->address());
    return ok_status();
  }

  // The record's facts of the accelerator and of the ranks.
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
    say(words().header());
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
      const std::string text = train_report_text(*run_, *report, dur_ns, words().going_on(*report));
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
    json_ = json_text(answers::training_json(*run_, report, digest, words().going_on(report)), 2);
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
    metrics_.reset();
    recording_->close();
    if (!json_.empty() && is_told()) print_lines(json_ + "\n");
    return trained.ok() ? ok_status() : words().how_it_stopped(trained.error());
  }

  TrainWords words() const { return {arguments_, config_, *run_, ranks_->count()}; }
  state::StateStore& store() const { return run_->session().state().store(); }

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
  std::unique_ptr<watch::MetricsServer> metrics_;
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
  command->add_option("--model", arguments->model,
                      "in place of the run's own: a model file, or a folder of Hugging Face's "
                      "(config.json and safetensors) whose weights the run begins with");
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
  command
      ->add_option("--metrics", arguments->metrics_port,
                   "a port of 127.0.0.1 where Prometheus finds the run's figures, at /metrics; 0: "
                   "any free one, which is said")
      ->check(number_range(std::int64_t{0}, std::int64_t{65'535}));
  command->add_flag("--settings", arguments->settings,
                    "list every setting, with range and default");
  command->footer(
      "Ctrl-C finishes the step and commits; a second one leaves at once, and the state is still "
      "good.\n"
      "Examples:\n"
      "  sluice train sample_models/runs/tiny.toml\n"
      "  sluice train sample_models/runs/tiny.toml --set method=host --set devices=1 \\\n"
      "      --steps 20\n"
      "  sluice train sample_models/runs/tiny.toml --model ~/models/SmolLM2-135M\n"
      "  sluice train sample_models/runs/tiny.toml --at 50:pipeline=serial \\\n"
      "      --at 100:method=host\n"
      "  sluice train sample_models/runs/tiny.toml --resume --steps 400\n"
      "  sluice train sample_models/runs/tiny.toml --metrics 9100\n"
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
