#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/simulate_report.h"
#include "cli/sweep.h"

namespace sluice::cli {
namespace {

struct SimulateArguments {
  std::string model;
  std::string platform;
  std::vector<std::string> overrides;
  std::string sweep;
  bool json = false;
  bool csv = false;
};

struct Simulated {
  train::RunPlan plan;
  train::SimulatedStep step;
};

Result<Simulated> simulate(const SimulateArguments& arguments,
                           const std::vector<std::string>& more) {
  std::vector<std::string> settings = arguments.overrides;
  settings.insert(settings.end(), more.begin(), more.end());
  ASSIGN_OR_RETURN(const train::RunConfig config,
                   train::simulation_config(arguments.model, arguments.platform, settings));
  ASSIGN_OR_RETURN(train::RunPlan plan, train::plan_run(config));
  ASSIGN_OR_RETURN(train::SimulatedStep step, train::simulate_step(plan));
  return Simulated{std::move(plan), std::move(step)};
}

Status simulate_once(const SimulateArguments& arguments) {
  const TimeNs start_ns = monotonic_now_ns();
  ASSIGN_OR_RETURN(const Simulated simulated, simulate(arguments, {}));
  const TimeNs dur_ns = monotonic_now_ns() - start_ns;
  const std::string text = arguments.json
                               ? simulate_report_json(simulated.plan, simulated.step)
                               : simulate_report_text(simulated.plan, simulated.step, dur_ns);
  fmt::print("{}\n", text);
  return ok_status();
}

Status simulate_sweep(const SimulateArguments& arguments) {
  ASSIGN_OR_RETURN(const Sweep sweep, parse_sweep(arguments.sweep));
  std::vector<SweepRow> rows;
  for (const std::string& value : sweep.values) {
    ASSIGN_OR_RETURN(const Simulated simulated, simulate(arguments, {sweep.key + "=" + value}));
    rows.push_back({value, simulated.step});
  }
  if (arguments.json) {
    fmt::print("{}\n", sweep_json(sweep, rows));
  } else {
    fmt::print("{}", arguments.csv ? sweep_csv(sweep, rows) : sweep_table(sweep, rows));
  }
  return ok_status();
}

}  // namespace

void add_simulate_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command = app.add_subcommand(
      "simulate", "What a step would take on a machine that a platform file describes");
  command->add_option("model", arguments->model, "the model's shape (MODEL.toml)")->required();
  command->add_option("--platform", arguments->platform, "the machine (PLATFORM.toml)")->required();
  command
      ->add_option("--set", arguments->overrides,
                   "key=value: any setting of a run (sluice train --settings); may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--sweep", arguments->sweep,
                      "key=1..10 or key=a,b,c: one step for each value, as a table");
  CLI::Option* json =
      command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->add_flag("--csv", arguments->csv, "print the sweep as comma-separated values")
      ->needs("--sweep")
      ->excludes(json);
  command->footer(
      "The schedule of a training run as it is, in simulated time and without data. Where --set "
      "says\n"
      "nothing: batch 4, the model's whole sequence, activations recomputed, subgroups of 40 "
      "million\n"
      "elements, 6.4 GB of bounce_memory, else the defaults of sluice train.\n"
      "Examples:\n"
      "  sluice simulate sample_models/models/gpt2-4.0b.toml \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --set devices=10 --set "
      "method=csd\n"
      "  sluice simulate sample_models/models/gpt2-8.4b.toml \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --sweep devices=1..10");
  command->callback([arguments, &exit_code] {
    const Status status =
        arguments->sweep.empty() ? simulate_once(*arguments) : simulate_sweep(*arguments);
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
