#include <charconv>

#include "base/clock.h"
#include "base/log.h"
#include "base/setting_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/fitted_simulation.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/run_argument.h"
#include "cli/shard_report.h"
#include "cli/simulate_report.h"
#include "cli/sweep.h"
#include "cli/terminal.h"
#include "core/plan/run_plan.h"
#include "core/platform/platform_change.h"
#include "core/platform/platform_text.h"
#include "core/session/run_facts.h"
#include "core/session/run_record.h"
#include "core/simulate/rank_part.h"
#include "core/simulate/sharding_choice.h"
#include "core/tune/like_run.h"
#include "core/tune/recorded_run.h"
#include "core/weights/model_folder.h"
#include "storage/rundb/reader.h"

namespace sluice::cli {
namespace {

struct SimulateArguments {
  std::string like;  // a recorded run's database, in place of a model
  std::string model;
  std::string platform;  // with `like`: another machine than the run's; empty: the run's
  std::vector<std::string> overrides;
  std::vector<std::string> platform_changes;
  std::string database;
  std::string sweep;
  std::string ranks;                 // of a cluster
  std::string sharding;              // what they have parts of; empty: each has the whole model
  std::string state = "memory";      // where it lies
  std::vector<std::string> without;  // overlaps of a sharded step
  bool fit = false;                  // with `like`: on the machine as fitted to the run's steps
  bool json = false;
  bool csv = false;

  // With `like` the platform file of another machine is a setting of the simulated run.
  std::vector<std::string> settings() const {
    std::vector<std::string> all;
    if (!like.empty() && !platform.empty()) all.push_back("platform=" + platform);
    all.insert(all.end(), overrides.begin(), overrides.end());
    return all;
  }
};

// "8", or "4x2" as with --shard.
Result<std::int64_t> rank_count_of(const std::string& text) {
  if (text.empty()) return 1;
  if (text.find('x') != std::string::npos) {
    ASSIGN_OR_RETURN(const platform::Scope scope, platform::parse_scope(text));
    return scope.size();
  }
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 1 &&
      count <= platform::kRanksMax) {
    return count;
  }
  return make_error(ErrorCode::config,
                    "--ranks {}: no number of ranks; write 1 to {}, or 4x2 for ranks in a node x "
                    "nodes",
                    text, platform::kRanksMax);
}

// The settings of --set and --platform-set, with those that a sweep adds to either.
Result<settings::RunConfig> config_of(const SimulateArguments& arguments) {
  ASSIGN_OR_RETURN(
      settings::RunConfig config,
      !arguments.like.empty()
          ? of_database(tune::config_like(arguments.like, arguments.settings()))
          : simulate::simulation_config(arguments.model, arguments.platform, arguments.overrides));
  ASSIGN_OR_RETURN(config.batch.rank_count, rank_count_of(arguments.ranks));
  const bool is_mesh = arguments.ranks.find('x') != std::string::npos;
  if (is_mesh && config.shards.mesh == "auto") config.shards.mesh = arguments.ranks;
  return config;
}

// A plan, and which rank's part of a run it is.
struct Simulated {
  plan::RunPlan plan;
  std::optional<simulate::RankPart> part;  // of several ranks

  std::string mesh() const { return part ? part->mesh() : std::string(); }
  Result<simulate::SimulatedStep> step(const simulate::SimulationRecording* recording) const {
    return part ? simulate::simulate_rank(plan, *part, recording)
                : simulate::simulate_step(plan, recording);
  }
};

// With --like: model and machine as the record has them, wherever their files are now.
Result<tune::RecordedRun> recorded_run(const SimulateArguments& arguments) {
  auto run = tune::open_recorded_run({arguments.like, {}, {}});
  if (!run.ok()) return wrong_database(run.error());
  return run;
}

Result<platform::Platform> changed(const platform::Platform& platform,
                                   const SimulateArguments& arguments) {
  ASSIGN_OR_RETURN(const platform::PlatformChange change,
                   platform::parse_platform_change(arguments.platform_changes));
  return platform::with_change(platform, change);
}

Result<platform::Platform> machine_of(const SimulateArguments& arguments,
                                      const platform::Platform& recorded) {
  if (arguments.platform.empty()) return recorded;
  return platform::load_platform(arguments.platform);
}

Result<plan::RunPlan> plan_like(const SimulateArguments& arguments,
                                const settings::RunConfig& config) {
  ASSIGN_OR_RETURN(const tune::RecordedRun run, recorded_run(arguments));
  ASSIGN_OR_RETURN(const platform::Platform machine, machine_of(arguments, run.platform));
  ASSIGN_OR_RETURN(const platform::Platform platform, changed(machine, arguments));
  if (run.model.is_of_program()) return run.model.plan(config, platform);
  ASSIGN_OR_RETURN(const settings::RunConfig chosen,
                   simulate::with_sharding(config, run.model.shape, platform));
  return plan::plan_run(chosen, run.model.shape, platform);
}

Result<plan::RunPlan> plan_of(const SimulateArguments& arguments) {
  ASSIGN_OR_RETURN(const settings::RunConfig config, config_of(arguments));
  if (!arguments.like.empty()) return plan_like(arguments, config);
  if (arguments.platform_changes.empty()) {
    ASSIGN_OR_RETURN(const settings::RunConfig chosen, simulate::with_sharding(config));
    return plan::plan_run(chosen);
  }
  ASSIGN_OR_RETURN(const model::ModelShape shape, weights::load_shape(config.files.model));
  ASSIGN_OR_RETURN(const platform::Platform unchanged, platform::load_platform(arguments.platform));
  ASSIGN_OR_RETURN(const platform::Platform platform, changed(unchanged, arguments));
  ASSIGN_OR_RETURN(const settings::RunConfig chosen,
                   simulate::with_sharding(config, shape, platform));
  return plan::plan_run(chosen, shape, platform);
}

Result<Simulated> simulated_of(const SimulateArguments& arguments) {
  Simulated simulated;
  ASSIGN_OR_RETURN(simulated.plan, plan_of(arguments));
  if (simulated.plan.config.batch.rank_count == 1) return simulated;
  ASSIGN_OR_RETURN(simulated.part, simulate::RankPart::take(simulated.plan));
  return simulated;
}

SimulateArguments with_swept(SimulateArguments arguments, const std::string& key,
                             const std::string& value) {
  const bool is_platforms = platform::is_platform_change(key);
  (is_platforms ? arguments.platform_changes : arguments.overrides).push_back(key + "=" + value);
  return arguments;
}

void put(collect::RunFacts& facts, std::string_view key, const std::string& text) {
  for (rundb::MetaRow& fact : facts.meta) {
    if (fact.key == key) fact.value = text;
  }
}

// The machine as it was simulated, not as its file says; with --like the model, too.
Status record_simulated_machine(const SimulateArguments& arguments, collect::RunFacts& facts) {
  platform::Platform unchanged;
  if (arguments.like.empty()) {
    if (arguments.platform_changes.empty()) return ok_status();
    ASSIGN_OR_RETURN(unchanged, platform::load_platform(arguments.platform));
  } else {
    ASSIGN_OR_RETURN(const tune::RecordedRun run, recorded_run(arguments));
    ASSIGN_OR_RETURN(const auto like, rundb::Reader::open(arguments.like));
    ASSIGN_OR_RETURN(const std::vector<rundb::MetaRow> recorded, like->meta());
    for (const rundb::MetaRow& row : recorded) {
      if (row.key == "model_text") put(facts, row.key, row.value);
    }
    ASSIGN_OR_RETURN(unchanged, machine_of(arguments, run.platform));
  }
  ASSIGN_OR_RETURN(const platform::Platform platform, changed(unchanged, arguments));
  put(facts, "platform_text", platform::platform_text(platform));
  return ok_status();
}

// The step as a run database, which opens like that of a run that trained.
Result<simulate::SimulatedStep> simulate_recorded(const SimulateArguments& arguments,
                                                  const Simulated& simulated) {
  const plan::RunPlan& plan = simulated.plan;
  const std::string& database = arguments.database;
  record::Recorder recorder;
  recorder.set_level(plan.config.record);
  std::unique_ptr<collect::Collector> collector;
  simulate::SimulationRecording recording;
  recording.recorder = &recorder;
  recording.begin = [&]() -> Status {
    ASSIGN_OR_RETURN(std::unique_ptr<rundb::Writer> writer,
                     rundb::Writer::create(database, rundb::IfExists::replace));
    const state::Layout layout(plan.geometry, plan.device_map);
    collect::RunFacts facts =
        session::run_facts(plan, session::ModeClock::simulated, recorder, layout);
    RETURN_IF_ERROR(record_simulated_machine(arguments, facts));
    ASSIGN_OR_RETURN(collector,
                     collect::Collector::start(recorder, std::move(writer), std::move(facts),
                                               {.records_itself = false}));
    collector->add(rundb::ModeRow{
        0, 0,
        session::mode_line(plan.config, session::ModeClock::simulated,
                           {.devices = {}, .computes = {}, .ranks = simulated.mesh()})});
    return ok_status();
  };
  recording.write_down = [&] { return collector->flush(); };
  Result<simulate::SimulatedStep> step = simulated.step(&recording);
  if (!collector) return step;
  const Status judged = session::record_verdicts(*collector, database, 0);
  const Status stopped = collector->stop();
  if (step.ok() && !stopped.ok()) return stopped.error();
  if (step.ok() && !judged.ok()) return judged.error();
  return step;
}

Result<simulate::SimulatedStep> simulate(const SimulateArguments& arguments,
                                         const Simulated& simulated) {
  if (arguments.database.empty()) return simulated.step(nullptr);
  RETURN_IF_ERROR(rundb::Writer::check_path(arguments.database));
  return simulate_recorded(arguments, simulated);
}

Status simulate_once(const SimulateArguments& arguments) {
  const TimeNs start_ns = monotonic_now_ns();
  ASSIGN_OR_RETURN(const Simulated simulated, simulated_of(arguments));
  const plan::RunPlan& plan = simulated.plan;
  for (const std::string& warning : plan.config.warnings) log_warning(warning);
  ASSIGN_OR_RETURN(const simulate::SimulatedStep step, simulate(arguments, simulated));
  const TimeNs dur_ns = monotonic_now_ns() - start_ns;
  print_lines(arguments.json
                  ? json_text(answers::simulated_json(plan, step), 2) + "\n"
                  : fitted(simulate_report_text(plan, step, dur_ns), terminal_columns()));
  return ok_status();
}

Status simulate_ranks(const SimulateArguments& arguments) {
  ASSIGN_OR_RETURN(const settings::RunConfig config, config_of(arguments));
  ASSIGN_OR_RETURN(const ShardedRuns runs,
                   sharded_run(config, {arguments.sharding, arguments.ranks, arguments.state,
                                        arguments.without, arguments.overrides}));
  ASSIGN_OR_RETURN(const std::string report,
                   arguments.json ? shard_report_json(runs) : shard_report_text(runs));
  print_lines(arguments.json ? report + "\n" : fitted(report, terminal_columns()));
  return ok_status();
}

Status simulate_sweep(const SimulateArguments& arguments) {
  ASSIGN_OR_RETURN(const Sweep sweep, parse_sweep(arguments.sweep));
  std::vector<SweepRow> rows;
  std::string of_what;
  ProgressLine progress;
  for (const std::string& value : sweep.values) {
    progress.show(static_cast<double>(rows.size()) / static_cast<double>(sweep.values.size()),
                  sweep.key + "=" + value);
    ASSIGN_OR_RETURN(const Simulated simulated,
                     simulated_of(with_swept(arguments, sweep.key, value)));
    const plan::RunPlan& plan = simulated.plan;
    ASSIGN_OR_RETURN(simulate::SimulatedStep step, simulated.step(nullptr));
    rows.push_back({value, std::move(step)});
    of_what = fmt::format("{} on {}", plan.shape.name, plan.platform.name);
  }
  progress.finish();
  if (arguments.json) {
    print_lines(json_text(answers::sweep_json(sweep.key, rows), 2) + "\n");
  } else {
    print_lines(arguments.csv ? sweep_csv(sweep, rows) : sweep_table(sweep, of_what, rows));
  }
  return ok_status();
}

Status simulate_asked(const SimulateArguments& arguments) {
  if (arguments.model.empty() && arguments.like.empty()) {
    return make_error(ErrorCode::config,
                      "what shall be simulated? Name MODEL.toml and --platform PLATFORM.toml, or a "
                      "recorded run with --like RUN.db");
  }
  if (arguments.fit) return simulate_fitted({arguments.like, arguments.overrides, arguments.json});
  if (!arguments.sharding.empty()) return simulate_ranks(arguments);
  return arguments.sweep.empty() ? simulate_once(arguments) : simulate_sweep(arguments);
}

}  // namespace

void add_simulate_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command = app.add_subcommand(
      "simulate",
      "What a step would take on another machine or with other settings, also of a recorded run");
  CLI::Option* model = command->add_option(
      "model", arguments->model, "the model's shape (MODEL.toml), or a folder of Hugging Face's");
  CLI::Option* platform = command->add_option(
      "--platform", arguments->platform,
      "the machine (PLATFORM.toml); with --like in place of the one that the run had");
  model->needs(platform);
  CLI::Option* like = command
                          ->add_option("--like", arguments->like,
                                       "in place of a model: model, machine and settings of a "
                                       "recorded run (RUN.db), which may be live")
                          ->excludes(model);
  take_database_of(*like);
  CLI::Option* fit =
      command
          ->add_flag("--fit", arguments->fit,
                     "with --like: fit the machine to the run's steady steps first, and say what "
                     "the settings would change; without --set what each setting would by itself")
          ->needs(like)
          ->excludes(platform);
  command
      ->add_option("--set", arguments->overrides,
                   "key=value: any setting of a run (sluice train --settings); may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--platform-set", arguments->platform_changes,
                   "key=value: engine_scale, media_scale, internal_scale or link_scale (times as "
                   "fast as the platform file says) or compute_units (of each engine); may be "
                   "repeated")
      ->take_all()
      ->allow_extra_args(false)
      ->excludes(fit);
  CLI::Option* database =
      command->add_option("--db", arguments->database, "record the step into this run database")
          ->excludes(fit);
  command
      ->add_option("--sweep", arguments->sweep,
                   "key=1..10 or key=a,b,c, of either --set: one step for each value, as a table")
      ->excludes(database)
      ->excludes(fit);
  command
      ->add_option("--ranks", arguments->ranks,
                   "with a cluster: a step of one of 8 ranks, or 4x2 (in a node x nodes), each "
                   "with drives like the platform's, and the whole model or what shard_state "
                   "and the like say; batch is one rank's. With --shard: as if the cluster had "
                   "only 4x2 ranks")
      ->excludes(fit);
  CLI::Option* sharding =
      command
          ->add_option("--shard", arguments->sharding,
                       "with a cluster: a step of one of its ranks, parameters, gradients and "
                       "state over 4x1,4x1,8x1 ranks (in a node x nodes), or data_parallel, zero1, "
                       "zero2, zero3, mics, auto")
          ->needs(model)
          ->excludes(database)
          ->excludes("--sweep")
          ->excludes("--platform-set");
  command
      ->add_option(
          "--state", arguments->state,
          "with --shard: where a rank's state lies: memory, in which a micro-batch goes "
          "through all layers, or drives, with the step of a run that trains, its settings "
          "and activations that leave")
      ->needs(sharding);
  command
      ->add_option("--without", arguments->without,
                   "with --shard: gather_forward, gather_backward, keep_gathered, reduce_backward "
                   "or share_forward goes on beside nothing; may be repeated")
      ->take_all()
      ->allow_extra_args(false)
      ->needs(sharding);
  CLI::Option* json =
      command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->add_flag("--csv", arguments->csv, "print the sweep as comma-separated values")
      ->needs("--sweep")
      ->excludes(json);
  command->footer(
      "The schedule of a training run as it is, in simulated time and without data. Where --set "
      "says\n"
      "nothing: batch 4, the model's whole sequence, activations recomputed, subgroups of 85 "
      "million\n"
      "elements, 6.4 GB of bounce_memory, else the defaults of sluice train.\n"
      "Examples:\n"
      "  sluice simulate sample_models/models/gpt2-4.0b.toml \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --set devices=10\n"
      "  sluice simulate sample_models/models/gpt2-8.4b.toml \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml \\\n"
      "      --sweep devices=1..10\n"
      "  sluice simulate sample_models/models/gpt2-4.0b.toml \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --set devices=10 \\\n"
      "      --platform-set engine_scale=100 --platform-set compute_units=2\n"
      "  sluice simulate sample_models/models/llama-13b.toml \\\n"
      "      --platform sample_models/platforms/a800-64.toml --shard 4x1,4x1,8x1 \\\n"
      "      --set batch=1\n"
      "  sluice simulate --like sim.db --set wire=native --db sim-2.db\n"
      "  sluice simulate --like out/tiny --fit --set buffers=6 --set pipeline=nbuffer\n"
      "--like repeats the recorded run as its files describe the machine, --fit as its steps show "
      "it; how\n"
      "far that is from what was recorded is said beside the predictions.");
  command->callback([arguments, &exit_code] {
    const Status status = simulate_asked(*arguments);
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
