#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/simulate_report.h"
#include "core/train/tuning.h"

namespace sluice::cli {
namespace {

struct TuneArguments {
  std::string model;
  std::string platform;
  std::vector<std::string> overrides;
  std::vector<std::string> held;
  bool json = false;
};

class TuneCommand {
 public:
  explicit TuneCommand(const TuneArguments& arguments) : arguments_(arguments) {}

  Status run() {
    ASSIGN_OR_RETURN(const train::RunPlan start, plan_with({}));
    ASSIGN_OR_RETURN(before_, train::simulate_step(start));
    ASSIGN_OR_RETURN(knobs_, knobs());
    train::TuneSettings settings;
    for (const auto& [key, value] : train::setting_values(start.config)) {
      for (const train::TuneKnob& knob : knobs_) {
        if (knob.key == key) settings[key] = value;
      }
    }
    ASSIGN_OR_RETURN(result_, train::tune(knobs_, settings, [this](const auto& tried) {
                       return Result<double>(seconds_with(tried));
                     }));
    ASSIGN_OR_RETURN(const train::RunPlan best, plan_with(result_.best));
    ASSIGN_OR_RETURN(const train::SimulatedStep after, train::simulate_step(best));
    fmt::print("{}\n", arguments_.json ? json(best, after) : text(best, after));
    return ok_status();
  }

 private:
  // All knobs but those that are held or that --set has set.
  Result<std::vector<train::TuneKnob>> knobs() const {
    std::vector<train::TuneKnob> all = train::tune_knobs();
    std::vector<std::string> keys;
    for (const train::TuneKnob& knob : all) keys.push_back(knob.key);
    for (const std::string& key : arguments_.held) {
      if (std::ranges::find(keys, key) != keys.end()) continue;
      return make_error(ErrorCode::config, "--hold {}: nothing of that name is tuned{}; {} are",
                        key, did_you_mean(key, keys), fmt::join(keys, ", "));
    }
    std::erase_if(all, [&](const train::TuneKnob& knob) {
      return std::ranges::find(arguments_.held, knob.key) != arguments_.held.end();
    });
    return all;
  }

  Result<train::RunPlan> plan_with(const train::TuneSettings& settings) const {
    std::vector<std::string> overrides = arguments_.overrides;
    for (const auto& [key, value] : settings) overrides.push_back(key + "=" + value);
    ASSIGN_OR_RETURN(const train::RunConfig config,
                     train::simulation_config(arguments_.model, arguments_.platform, overrides));
    return train::plan_run(config);
  }

  // What does not fit the machine takes for ever.
  double seconds_with(const train::TuneSettings& settings) const {
    const auto plan = plan_with(settings);
    if (!plan.ok()) return std::numeric_limits<double>::infinity();
    const auto step = train::simulate_step(*plan);
    return step.ok() ? step->total_seconds : std::numeric_limits<double>::infinity();
  }

  std::size_t grid_size() const {
    std::size_t size = 1;
    for (const train::TuneKnob& knob : knobs_) size *= knob.values.size();
    return size;
  }

  std::string text(const train::RunPlan& best, const train::SimulatedStep& after) const {
    const auto duration = [](double seconds) {
      return format_duration(static_cast<TimeNs>(seconds * 1e9));
    };
    std::string text =
        fmt::format("SIMULATED: {} on {}, {} device{}\nA step: {} -> {}, {:.2f} times as fast.\n\n",
                    best.shape.name, best.platform.name, best.config.offload.devices,
                    best.config.offload.devices == 1 ? "" : "s", duration(before_.total_seconds),
                    duration(after.total_seconds), before_.total_seconds / after.total_seconds);
    if (result_.changes.empty()) text += "Nothing to change: no knob makes it shorter.\n";
    for (const train::TuneChange& change : result_.changes) {
      text += fmt::format(
          "  --set {:<28} was {:<10} {}\n", change.key + "=" + change.to, change.from,
          std::isinf(change.worth_seconds) ? "the others need it"
                                           : "worth " + duration(change.worth_seconds) + " a step");
    }
    text += "\n" + simulate_verdict(best, after);
    return text + fmt::format("\n{} of {} combinations were simulated.", result_.evaluation_count,
                              grid_size());
  }

  std::string json(const train::RunPlan& best, const train::SimulatedStep& after) const {
    nlohmann::ordered_json json;
    json["simulated"] = true;
    json["model"] = best.shape.name;
    json["platform"] = best.platform.name;
    json["seconds"] = {{"before", before_.total_seconds}, {"after", after.total_seconds}};
    json["changes"] = nlohmann::ordered_json::array();
    for (const train::TuneChange& change : result_.changes) {
      json["changes"].push_back({{"key", change.key},
                                 {"from", change.from},
                                 {"to", change.to},
                                 {"worth_seconds", change.worth_seconds}});  // null: infinite
    }
    json["evaluations"] = result_.evaluation_count;
    json["combinations"] = grid_size();
    return json.dump(2);
  }

  const TuneArguments& arguments_;
  std::vector<train::TuneKnob> knobs_;
  train::SimulatedStep before_;
  train::TuneResult result_;
};

}  // namespace

void add_tune_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command = app.add_subcommand(
      "tune", "Which settings would make a step shortest on a machine, by simulating it");
  command->add_option("model", arguments->model, "the model's shape (MODEL.toml)")->required();
  command->add_option("--platform", arguments->platform, "the machine (PLATFORM.toml)")->required();
  command
      ->add_option("--set", arguments->overrides,
                   "key=value: where the search begins, as in sluice simulate; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--hold", arguments->held, "a knob to leave as it is; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer(
      "Turned are method, pipeline, subgroup_elements, buffers, wire and gradient_tier: none of "
      "them\n"
      "changes what the model learns.\n"
      "Examples:\n"
      "  sluice tune sample_models/models/gpt2-4.0b.toml \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --set devices=10\n"
      "  sluice tune sample_models/models/gpt2-4.0b.toml --hold method --set method=host \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --set devices=4");
  command->callback([arguments, &exit_code] {
    const Status status = TuneCommand(*arguments).run();
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
