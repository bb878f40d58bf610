// `sluice plan`: where everything lives in a step, chosen by simulating it.

#include <filesystem>

#include "base/figure_text.h"
#include "base/log.h"
#include "base/shell_quoted.h"
#include "cli/commands.h"
#include "cli/computing_memory.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "cli/program.h"
#include "cli/progress_line.h"
#include "cli/rank_plan.h"
#include "cli/run_argument.h"
#include "cli/terminal.h"
#include "core/simulate/simulation.h"
#include "core/tune/fitted_run.h"

namespace sluice::cli {
namespace {

struct PlanArguments {
  std::string start;  // RUN.toml, or with `platform` MODEL.toml
  std::string platform;
  std::string recorded;  // RUN.db, in place of both
  std::vector<std::string> overrides;
  std::vector<std::string> held;
  std::string ranks;  // "4x2", of a cluster
  std::string state;  // with ranks: where it lies
  std::int64_t commit_every = 1;
  int simulations = 600;
  bool json = false;
};

// What is planned: how its runs are made, and what is said of it.
struct Planned {
  tune::PlanRequest request;
  std::string command;
  double time_scale = 1;
  bool is_fitted = false;
};

class PlanCommand {
 public:
  explicit PlanCommand(const PlanArguments& arguments) : arguments_(arguments) {}

  Status run() {
    RETURN_IF_ERROR(check_arguments());
    if (!arguments_.ranks.empty()) return plan_ranks(rank_arguments());
    RETURN_IF_ERROR(tune::check_held_plan(arguments_.held, "--hold"));
    ASSIGN_OR_RETURN(Planned planned, what_is_planned());
    planned.request.held = arguments_.held;
    planned.request.commit_every_max = arguments_.commit_every;
    planned.request.simulations_max = arguments_.simulations;
    planned.request.on_try = [this](int tried) { show_progress(tried); };
    planned.request.stops = is_interrupted;
    install_interrupt_handler();
    const auto plan = tune::plan_tiers(planned.request);
    progress_.finish();
    if (!plan.ok()) return plan.error();
    const PlanReport report{.plan = *plan,
                            .command = planned.command,
                            .overrides = arguments_.overrides,
                            .time_scale = planned.time_scale,
                            .is_fitted = planned.is_fitted};
    print_lines(arguments_.json ? plan_json(report) + "\n"
                                : fitted(plan_text(report), terminal_columns()));
    return ok_status();
  }

 private:
  void show_progress(int tried) {
    progress_.show(std::min(1.0, static_cast<double>(tried) / arguments_.simulations),
                   fmt::format("{} steps simulated", format_whole(tried)));
  }

  RankPlanArguments rank_arguments() const {
    return {.model = arguments_.start,
            .platform = arguments_.platform,
            .ranks = arguments_.ranks,
            .state = arguments_.state,
            .overrides = arguments_.overrides,
            .held = arguments_.held,
            .simulations = arguments_.simulations,
            .json = arguments_.json};
  }

  Status check_arguments() const {
    if (arguments_.start.empty() && arguments_.recorded.empty()) {
      return make_error(ErrorCode::config,
                        "what shall be planned? Name RUN.toml, or MODEL.toml with --platform "
                        "PLATFORM.toml, or a recorded run with --from RUN.db");
    }
    if (!tune::is_database_path(arguments_.start)) return ok_status();
    return make_error(ErrorCode::config, "{} is a recorded run: plan it with --from {}",
                      arguments_.start, arguments_.start);
  }

  Result<Planned> what_is_planned() const {
    if (!arguments_.recorded.empty()) return from_recorded();
    return arguments_.platform.empty() ? from_run_file() : from_model();
  }

  std::vector<std::string> over_all(const std::vector<std::string>& settings) const {
    std::vector<std::string> all = arguments_.overrides;
    all.insert(all.end(), settings.begin(), settings.end());
    return all;
  }

  Result<Planned> from_model() const {
    Planned planned;
    planned.request.memory = modelled_memory();
    planned.request.plan_of =
        [this](const std::vector<std::string>& settings) -> Result<plan::RunPlan> {
      ASSIGN_OR_RETURN(
          const settings::RunConfig config,
          simulate::simulation_config(arguments_.start, arguments_.platform, over_all(settings)));
      return plan::plan_run(config);
    };
    planned.command =
        fmt::format("{} simulate {} --platform {}", program(), shell_quoted(arguments_.start),
                    shell_quoted(arguments_.platform));
    return planned;
  }

  // The machine as a run of this file finds it.
  static Result<plan::RunPlan> plan_of_run(const settings::RunConfig& config) {
    ASSIGN_OR_RETURN(plan::RunPlan run, plan::plan_run(config));
    if (config.clock.kind == settings::ClockKind::real) {
      ASSIGN_OR_RETURN(run.platform, plan::with_real_accelerator(run.platform, config));
    }
    return run;
  }

  Result<Planned> from_run_file() const {
    ASSIGN_OR_RETURN(const settings::RunConfig config,
                     settings::load_run_config(arguments_.start, arguments_.overrides));
    for (const std::string& warning : config.warnings) log_warning(warning);
    Planned planned;
    ASSIGN_OR_RETURN(planned.request.memory, memory_here(config));
    planned.request.plan_of =
        [this](const std::vector<std::string>& settings) -> Result<plan::RunPlan> {
      ASSIGN_OR_RETURN(const settings::RunConfig with,
                       settings::load_run_config(arguments_.start, over_all(settings)));
      return plan_of_run(with);
    };
    planned.command = program() + " train " + shell_quoted(arguments_.start);
    if (config.clock.kind == settings::ClockKind::emulated) {
      planned.time_scale = config.clock.time_scale;
    }
    return planned;
  }

  Result<Planned> from_recorded() const {
    auto run = tune::open_recorded_run({arguments_.recorded, "", ""});
    if (!run.ok()) return wrong_database(run.error());
    auto fitted_run = tune::fitted_to(std::move(*run));
    if (!fitted_run.ok()) return fitted_run.error().with_context(arguments_.recorded);
    auto fitted = std::make_shared<tune::FittedRun>(std::move(*fitted_run));
    Planned planned;
    ASSIGN_OR_RETURN(planned.request.memory, memory_of(fitted->run));
    planned.request.plan_of = [this, fitted](const std::vector<std::string>& settings) {
      return tune::plan_with(*fitted, over_all(settings));
    };
    planned.command = command_like(fitted->run.is_simulated);
    planned.time_scale = fitted->run.time_scale;
    planned.is_fitted = true;
    return planned;
  }

  // A run that trains anew writes into a folder beside that of the recorded one.
  std::string command_like(bool is_simulated) const {
    const std::string like = " --like " + shell_quoted(arguments_.recorded);
    if (is_simulated) return program() + " simulate" + like;
    const std::filesystem::path folder =
        std::filesystem::absolute(arguments_.recorded).parent_path();
    return program() + " train" + like + " --set " +
           shell_quoted("output=" + folder.string() + "-planned");
  }

  const PlanArguments& arguments_;
  ProgressLine progress_;
};

}  // namespace

void add_plan_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand(
      "plan", "Where a step's data should live under caps of memory, by simulating it");
  CLI::Option* start = command->add_option(
      "start", arguments->start,
      "the run's settings (RUN.toml), or with --platform the model's shape (MODEL.toml)");
  CLI::Option* platform = command->add_option("--platform", arguments->platform,
                                              "the machine of a model (PLATFORM.toml)");
  platform->needs(start);
  add_run_argument(*command, "--from", arguments->recorded,
                   "instead of both: a recorded run (RUN.db), to which the platform is fitted")
      ->required(false)
      ->excludes(start);
  command
      ->add_option("--set", arguments->overrides,
                   "key=value: any setting, such as a cap (host_memory, accelerator_memory, "
                   "device_memory); may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  CLI::Option* ranks =
      command
          ->add_option("--ranks", arguments->ranks,
                       "with a cluster: how to shard over 4x2 of its ranks (in a node x nodes)")
          ->needs(platform);
  command
      ->add_option("--state", arguments->state,
                   "with --ranks: where a rank's state lies, memory or drives; else planned")
      ->needs(ranks);
  command->add_option("--hold", arguments->held, "a setting to leave as it is; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--commit-every", arguments->commit_every,
                   "steps that a crash may lose: commit_every may rise to this")
      ->check(number_range(1.0, 1000.0))
      ->excludes(ranks);
  command
      ->add_option("--simulations", arguments->simulations,
                   "steps that the search may simulate, about; 600")
      ->check(number_range(1.0, 1e6));
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer(
      "Chooses for each layer whether its activations stay, are recomputed, or leave for the "
      "drives,\n"
      "and gradient_tier, state_cache, activation_buffer, buffers, pipeline and wire; no choice "
      "changes\n"
      "the training result. The plan keeps to host_memory, accelerator_memory and device_memory, "
      "and\n"
      "comes with a lower bound. Ctrl-C ends the search and prints the best plan so far.\n"
      "With --ranks: over how many ranks parameters, gradients and state are sharded, what layers\n"
      "keep, and whether the state lies on drives, under accelerator_memory a rank. With state on\n"
      "drives activations may leave, too, and --set says any setting of a run.\n"
      "Examples:\n"
      "  sluice plan sample_models/runs/tiny.toml --set host_memory=400MB\n"
      "  sluice plan sample_models/models/gpt2-4.0b.toml \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --set devices=10 \\\n"
      "      --set accelerator_memory=24GB --set batch=16\n"
      "  sluice plan sample_models/models/llama-13b.toml \\\n"
      "      --platform sample_models/platforms/a800-64.toml --ranks 8x8 --set batch=1\n"
      "  sluice plan --from out/tiny/run.db --hold activations --json");
  command->callback([arguments, &exit_code] {
    const Status status = PlanCommand(*arguments).run();
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
