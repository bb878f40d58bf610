#include "cli/placement_search.h"

#include <filesystem>

#include "base/figure_text.h"
#include "base/log.h"
#include "base/shell_quoted.h"
#include "cli/computing_memory.h"
#include "cli/fitted_start.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "cli/program.h"
#include "cli/progress_line.h"
#include "cli/rank_plan.h"
#include "cli/terminal.h"
#include "core/simulate/simulation.h"
#include "core/tune/fitted_run.h"

namespace sluice::cli {
namespace {

// How the runs of a plan are made, and the report's words of them.
struct Planned {
  tune::PlanRequest request;
  std::string command;
  double time_scale = 1;
  bool is_fitted = false;
};

class PlacementSearch {
 public:
  explicit PlacementSearch(const TuneArguments& arguments) : arguments_(arguments) {}

  Status run() {
    RETURN_IF_ERROR(check_start());
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
    const answers::PlacementAnswer answer{.plan = *plan,
                                          .command = planned.command,
                                          .overrides = arguments_.overrides,
                                          .time_scale = planned.time_scale,
                                          .is_fitted = planned.is_fitted};
    print_lines(arguments_.json ? json_text(answers::to_json(answer), 2) + "\n"
                                : fitted(plan_text(answer), terminal_columns()));
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

  bool is_of_run() const { return tune::is_database_path(arguments_.start); }

  Status check_start() const {
    if (!is_of_run() || arguments_.platform.empty()) return ok_status();
    return make_error(
        ErrorCode::config,
        "--platform is the machine of a model, and {} is a recorded run, which brings "
        "its own",
        arguments_.start);
  }

  Result<Planned> what_is_planned() const {
    if (is_of_run()) return from_recorded();
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
    ASSIGN_OR_RETURN(tune::FittedRun fitted_run, fitted_start({arguments_.start, "", ""}));
    const auto fitted = std::make_shared<tune::FittedRun>(std::move(fitted_run));
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
    const std::string like = " --like " + shell_quoted(arguments_.start);
    if (is_simulated) return program() + " simulate" + like;
    const std::filesystem::path folder = std::filesystem::absolute(arguments_.start).parent_path();
    return program() + " train" + like + " --set " +
           shell_quoted("output=" + folder.string() + "-planned");
  }

  const TuneArguments& arguments_;
  ProgressLine progress_;
};

}  // namespace

Status search_placement(const TuneArguments& arguments) { return PlacementSearch(arguments).run(); }

}  // namespace sluice::cli
