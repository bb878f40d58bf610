#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/fit_report.h"
#include "cli/interrupt.h"
#include "cli/live_change.h"
#include "cli/output.h"
#include "cli/simulate_report.h"
#include "cli/sweep.h"
#include "core/calibrate/platform_text.h"
#include "core/platform/platform_text.h"
#include "core/tune/tuning.h"

namespace sluice::cli {
namespace {

struct TuneArguments {
  std::string start;     // a model, or a recorded run
  std::string model;     // of a recorded run, where its database has none
  std::string platform;  // the same
  std::vector<std::string> overrides;
  std::vector<std::string> held;
  double density = 1;
  std::string devices;
  std::string written_platform;  // empty: none
  bool force = false;
  bool apply = false;
  bool json = false;
};

// A machine, tuned.
struct Tuned {
  std::vector<tune::TuneKnob> knobs;
  plan::RunPlan best;
  simulate::SimulatedStep before;
  simulate::SimulatedStep after;
  tune::TuneResult result;
};

class TuneCommand {
 public:
  explicit TuneCommand(const TuneArguments& arguments)
      : arguments_(arguments), overrides_(arguments.overrides) {}

  Status run() {
    RETURN_IF_ERROR(check_start());
    if (arguments_.apply) RETURN_IF_ERROR(connect());
    ASSIGN_OR_RETURN(knobs_, knobs());
    if (is_database_path(arguments_.start)) RETURN_IF_ERROR(fit_to_run());
    if (!arguments_.devices.empty()) return compare_devices();
    ASSIGN_OR_RETURN(const Tuned tuned, tuned_machine());
    if (!arguments_.json) print_lines(text(tuned) + "\n");
    if (arguments_.apply) RETURN_IF_ERROR(apply(tuned));
    if (arguments_.json) print_lines(json(tuned) + "\n");
    return ok_status();
  }

 private:
  // What a run was recorded with, and the machine as it turned out to be.
  struct FittedRun {
    RecordedRun run;
    tune::PlatformFit fit;
  };

  Status check_start() const {
    if (is_database_path(arguments_.start)) return check_output();
    if (!arguments_.written_platform.empty()) {
      return make_error(ErrorCode::config,
                        "--write-platform writes the platform that was fitted to a recorded run, "
                        "and {} is read as a model",
                        arguments_.start);
    }
    if (!arguments_.model.empty()) {
      return make_error(ErrorCode::config,
                        "--model goes with a recorded run, and {} is read as a model already",
                        arguments_.start);
    }
    if (!arguments_.platform.empty()) return ok_status();
    return make_error(ErrorCode::config,
                      "{}: is read as a model, which needs --platform PLATFORM.toml; a recorded "
                      "run (RUN.db) brings its own",
                      arguments_.start);
  }

  // Before anything is simulated: a run that is over cannot be changed.
  Status connect() {
    if (!is_database_path(arguments_.start) || !arguments_.devices.empty()) {
      return make_error(
          ErrorCode::config, "--apply changes the knobs of a run that goes on (RUN.db){}",
          arguments_.devices.empty() ? fmt::format(", and {} is read as a model", arguments_.start)
                                     : ", and --devices compares machines");
    }
    ASSIGN_OR_RETURN(client_, connect_to_run(arguments_.start));
    ASSIGN_OR_RETURN(const control::Message answer,
                     client_->ask({.kind = control::RequestKind::knobs}, kLiveAnswer));
    for (const control::Knob& knob : answer.knobs) live_keys_.push_back(knob.key);
    return ok_status();
  }

  // All of the proposal or nothing.
  Status apply(const Tuned& tuned) {
    if (tuned.result.changes.empty()) return ok_status();
    control::SetRequest set;
    set.who = "tune";
    for (const tune::TuneChange& change : tuned.result.changes) {
      set.settings.push_back(change.key + "=" + change.to);
    }
    install_interrupt_handler();  // steps may be long
    ASSIGN_OR_RETURN(const control::Message answer, ask_for_change(*client_, set));
    ASSIGN_OR_RETURN(applied_, await_change(*client_, answer.change));
    if (!arguments_.json) {
      print("In force after step {}: {}\n", applied_->step,
            fmt::format("{}", fmt::join(set.settings, " ")));
    }
    return ok_status();
  }

  Status check_output() const {
    if (arguments_.written_platform.empty()) return ok_status();
    return calibrate::check_output(arguments_.written_platform, arguments_.force
                                                                    ? calibrate::IfThere::replace
                                                                    : calibrate::IfThere::refuse);
  }

  Status write_platform() const {
    if (arguments_.written_platform.empty()) return ok_status();
    const std::string head =
        fmt::format("# Fitted by `sluice tune` to {} recorded step{} of the run {}: {}.\n",
                    fitted_->fit.step_count, fitted_->fit.step_count == 1 ? "" : "s",
                    fitted_->run.name, fitted_->run.mode);
    return calibrate::write_platform(head + platform::platform_text(fitted_->fit.platform),
                                     arguments_.written_platform);
  }

  Status fit_to_run() {
    FittedRun fitted;
    ASSIGN_OR_RETURN(fitted.run,
                     open_recorded_run({arguments_.start, arguments_.model, arguments_.platform}));
    const auto fit = tune::fit_platform(fitted.run.config, fitted.run.shape, fitted.run.platform,
                                        fitted.run.steps);
    if (!fit.ok()) return fit.error().with_context(arguments_.start);
    fitted.fit = *fit;
    fitted_ = std::move(fitted);
    return write_platform();
  }

  Result<Tuned> tuned_machine() const {
    Tuned tuned;
    ASSIGN_OR_RETURN(const plan::RunPlan start, plan_with({}));
    ASSIGN_OR_RETURN(tuned.before, simulate::simulate_step(start));
    tuned.knobs = knobs_;
    const auto device_map = tune::device_map_knob(start.platform);
    if (device_map && !is_held(device_map->key)) tuned.knobs.push_back(*device_map);
    tune::TuneSettings settings;
    for (const tune::TuneKnob& knob : tuned.knobs) {
      settings[knob.key] = settings::value_of(start.config, knob.key);
    }
    ASSIGN_OR_RETURN(tuned.result, tune::tune(tuned.knobs, settings, [this](const auto& tried) {
                       return Result<double>(seconds_with(tried));
                     }));
    ASSIGN_OR_RETURN(tuned.best, plan_with(tuned.result.best));
    ASSIGN_OR_RETURN(tuned.after, simulate::simulate_step(tuned.best));
    return tuned;
  }

  // --devices: each number of devices tuned for itself, and what a second of the step costs.
  Status compare_devices() {
    const auto counts = parse_sweep_values(arguments_.devices);
    if (!counts.ok()) return counts.error().with_context("--devices");
    std::vector<Tuned> machines;
    for (const std::string& count : *counts) {
      overrides_ = arguments_.overrides;
      overrides_.push_back("devices=" + count);
      ASSIGN_OR_RETURN(machines.emplace_back(), tuned_machine());
    }
    print_lines(arguments_.json ? devices_json(machines) : devices_text(machines));
    return ok_status();
  }

  // All knobs but those that are held or that --set has set.
  Result<std::vector<tune::TuneKnob>> knobs() const {
    std::vector<tune::TuneKnob> all = tune::tune_knobs();
    std::vector<std::string> keys;
    for (const tune::TuneKnob& knob : all) keys.push_back(knob.key);
    keys.push_back("device_map");  // of a machine whose devices are not alike
    for (const std::string& key : arguments_.held) {
      if (std::ranges::find(keys, key) != keys.end()) continue;
      return make_error(ErrorCode::config, "--hold {}: nothing of that name is tuned{}; {} are",
                        key, did_you_mean(key, keys), fmt::join(keys, ", "));
    }
    if (arguments_.density < 1) all.push_back(tune::density_knob(arguments_.density));
    std::erase_if(all, [&](const tune::TuneKnob& knob) { return is_held(knob.key); });
    return all;
  }

  // With --apply also what cannot change while the run goes on.
  bool is_held(const std::string& key) const {
    if (arguments_.apply && std::ranges::find(live_keys_, key) == live_keys_.end()) return true;
    return std::ranges::find(arguments_.held, key) != arguments_.held.end();
  }

  Result<plan::RunPlan> plan_with(const tune::TuneSettings& settings) const {
    std::vector<std::string> overrides = overrides_;
    for (const auto& [key, value] : settings) overrides.push_back(key + "=" + value);
    if (fitted_) {
      ASSIGN_OR_RETURN(const settings::RunConfig config,
                       recorded_config(fitted_->run, arguments_.start, overrides));
      return plan::plan_run(config, fitted_->run.shape, fitted_->fit.platform);
    }
    ASSIGN_OR_RETURN(const settings::RunConfig config,
                     simulate::simulation_config(arguments_.start, arguments_.platform, overrides));
    return plan::plan_run(config);
  }

  // What does not fit the machine takes for ever.
  double seconds_with(const tune::TuneSettings& settings) const {
    const auto plan = plan_with(settings);
    if (!plan.ok()) return std::numeric_limits<double>::infinity();
    const auto step = simulate::simulate_step(*plan);
    return step.ok() ? step->total_seconds : std::numeric_limits<double>::infinity();
  }

  static std::size_t grid_size(const Tuned& tuned) {
    std::size_t size = 1;
    for (const tune::TuneKnob& knob : tuned.knobs) size *= knob.values.size();
    return size;
  }

  // Times of a recorded run are those of its own clock, as everywhere else.
  double time_scale() const { return fitted_ ? fitted_->run.time_scale : 1; }

  static std::string duration(double seconds) {
    return format_duration(static_cast<TimeNs>(seconds * 1e9));
  }

  std::string text(const Tuned& tuned) const {
    const double before = tuned.before.total_seconds * time_scale();
    const double after = tuned.after.total_seconds * time_scale();
    std::string text = fit_text();
    text += fmt::format(
        "SIMULATED: {} on {}{}, {} device{}\nA step: {} -> {}, {:.2f} times as fast.\n\n",
        tuned.best.shape.name, tuned.best.platform.name, fitted_ ? " as fitted" : "",
        tuned.best.config.offload.devices, tuned.best.config.offload.devices == 1 ? "" : "s",
        duration(before), duration(after), before / after);
    if (tuned.result.changes.empty()) text += "Nothing to change: no knob makes it shorter.\n";
    for (const tune::TuneChange& change : tuned.result.changes) {
      text +=
          fmt::format("  --set {:<28} was {:<10} {}\n", change.key + "=" + change.to, change.from,
                      std::isinf(change.worth_seconds)
                          ? "needed by the other changes"
                          : "worth " + duration(change.worth_seconds * time_scale()) + " a step");
    }
    if (fitted_ && changes(tuned, "method")) {
      text += "  The other method was never run here: its figures come from the platform file.\n";
    }
    if (fitted_ && changes(tuned, "subgroup_elements")) {
      text +=
          "  A state that exists keeps its subgroup_elements: for a run that goes on, add "
          "--hold subgroup_elements.\n";
    }
    text += "\n" + simulate_verdict(tuned.best, tuned.after);
    return text + fmt::format("\n{} of {} combinations were simulated.",
                              tuned.result.evaluation_count, grid_size(tuned));
  }

  static bool changes(const Tuned& tuned, const std::string& key) {
    return std::ranges::count(tuned.result.changes, key, &tune::TuneChange::key) > 0;
  }

  // Empty where nothing was recorded.
  std::string fit_text() const {
    if (!fitted_) return "";
    const std::string& file = arguments_.written_platform;
    return fit_report_text(fitted_->run, fitted_->fit) +
           (file.empty() ? "" : "It is written to " + file + ".\n") + "\n";
  }

  nlohmann::ordered_json json_with_fit() const {
    nlohmann::ordered_json json;
    if (fitted_) json["fit"] = fit_report_json(fitted_->run, fitted_->fit);
    return json;
  }

  std::string json(const Tuned& tuned) const {
    nlohmann::ordered_json json = json_with_fit();
    json["simulated"] = true;
    json["model"] = tuned.best.shape.name;
    json["platform"] = tuned.best.platform.name;
    json["seconds"] = {{"before", tuned.before.total_seconds * time_scale()},
                       {"after", tuned.after.total_seconds * time_scale()}};
    json["changes"] = nlohmann::ordered_json::array();
    for (const tune::TuneChange& change : tuned.result.changes) {
      json["changes"].push_back(
          {{"key", change.key},
           {"from", change.from},
           {"to", change.to},
           {"worth_seconds", change.worth_seconds * time_scale()}});  // null: infinite
    }
    json["evaluations"] = tuned.result.evaluation_count;
    json["combinations"] = grid_size(tuned);
    if (arguments_.apply) json["applied_after_step"] = nullptr;  // nothing was to be changed
    if (applied_) json["applied_after_step"] = applied_->step;
    return json_text(json, 2);
  }

  // Dollars times seconds: what a step costs, if the machine is used up by a fixed number of hours.
  static const Tuned& best_buy(const std::vector<Tuned>& machines) {
    return *std::ranges::min_element(machines, {}, [](const Tuned& tuned) {
      return tuned.after.total_seconds * tuned.best.platform.price_usd();
    });
  }

  std::string devices_text(const std::vector<Tuned>& machines) const {
    const Tuned& first = machines.front();
    const Tuned& best = best_buy(machines);
    const bool has_prices = first.best.platform.price_usd() > 0;
    std::string text = fit_text();
    text += fmt::format(
        "SIMULATED: {} on {}, each number of devices tuned\n{:>8} {:>10} {:>9} {:>12} {:>12}  "
        "settings\n",
        first.best.shape.name, first.best.platform.name, "devices", "a step", "speed-up", "price",
        "a step costs");
    for (const Tuned& tuned : machines) {
      const settings::OffloadConfig& offload = tuned.best.config.offload;
      const double price = tuned.best.platform.price_usd();
      const double cost = price * tuned.after.total_seconds /
                          (first.best.platform.price_usd() * first.after.total_seconds);
      text += fmt::format("{:>8} {:>10} {:>9.2f} {:>12} {:>12}  {}{}\n", offload.devices,
                          duration(tuned.after.total_seconds * time_scale()),
                          first.after.total_seconds / tuned.after.total_seconds,
                          has_prices ? fmt::format("{:.0f} USD", price) : "-",
                          has_prices ? fmt::format("{:.2f}", cost) : "-", settings_of(tuned),
                          has_prices && &tuned == &best ? "  <- cheapest" : "");
    }
    if (has_prices) return text + "A step costs: price x time, the first row being 1.\n";
    return text + "The platform file states no prices.\n";
  }

  std::string devices_json(const std::vector<Tuned>& machines) const {
    nlohmann::ordered_json json = json_with_fit();
    json["simulated"] = true;
    json["model"] = machines.front().best.shape.name;
    json["platform"] = machines.front().best.platform.name;
    json["rows"] = nlohmann::ordered_json::array();
    for (const Tuned& tuned : machines) {
      json["rows"].push_back({{"devices", tuned.best.config.offload.devices},
                              {"seconds", tuned.after.total_seconds * time_scale()},
                              {"price_usd", tuned.best.platform.price_usd()},
                              {"settings", tuned.result.best}});
    }
    return json_text(json, 2) + "\n";
  }

  static std::string settings_of(const Tuned& tuned) {
    const auto value = [&](const char* key) { return tuned.result.best.at(key); };
    std::string text;
    for (const char* key : {"method", "pipeline", "density"}) {
      if (!tuned.result.best.contains(key)) continue;
      text += (text.empty() ? "" : " · ") + value(key);
    }
    return text;
  }

  const TuneArguments& arguments_;
  std::vector<std::string> overrides_;
  std::vector<tune::TuneKnob> knobs_;
  std::optional<FittedRun> fitted_;
  std::unique_ptr<control::ControlClient> client_;  // --apply: to the run
  std::vector<std::string> live_keys_;              // its knobs
  std::optional<control::ChangeEvent> applied_;
};

}  // namespace

void add_tune_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command = app.add_subcommand(
      "tune", "Which settings would make a step shortest on a machine, by simulating it");
  command
      ->add_option("start", arguments->start,
                   "the model's shape (MODEL.toml), or a recorded run (RUN.db), to which the "
                   "platform is fitted first")
      ->required();
  command->add_option("--platform", arguments->platform,
                      "the machine (PLATFORM.toml); a recorded run brings its own");
  command->add_option("--model", arguments->model,
                      "MODEL.toml of a recorded run whose database does not hold it");
  CLI::Option* overrides =
      command
          ->add_option("--set", arguments->overrides,
                       "key=value: where the search begins, as in sluice simulate, or over the "
                       "settings of the recorded run; may be repeated")
          ->take_all()
          ->allow_extra_args(false);
  command->add_option("--hold", arguments->held, "a knob to leave as it is; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option(
          "--density", arguments->density,
          "gradients may be compressed down to this density, which changes what is learned")
      ->check(CLI::Range(1e-6, 1.0));
  command->add_option("--devices", arguments->devices,
                      "1..10 or 2,4,8: tune each number of devices, with prices and what a step "
                      "costs");
  command->add_option("--write-platform", arguments->written_platform,
                      "write the platform that was fitted to the recorded run to this file");
  command->add_flag("--force", arguments->force, "replace that file if it is there")
      ->needs("--write-platform");
  command
      ->add_flag("--apply", arguments->apply,
                 "change the run, which goes on, to what is proposed: knobs only, all of them "
                 "between two steps or none")
      ->excludes(overrides);  // the proposal is one for the run as it is
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer(
      "Turned are method, pipeline, subgroup_elements, buffers, wire, gradient_tier and, where "
      "the\n"
      "devices are not alike, device_map: none of them changes what the model learns. With "
      "--density\n"
      "the gradients' density is, too.\n"
      "A run may be finished, stopped or going on; it needs four recorded steps. What it tells of "
      "the\n"
      "machine comes first: how far simulation was off, which rates differ, what remains.\n"
      "Examples:\n"
      "  sluice tune out/tiny/run.db --hold subgroup_elements\n"
      "  sluice tune out/tiny/run.db --apply\n"
      "  sluice tune sample_models/models/gpt2-4.0b.toml \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --set devices=10\n"
      "  sluice tune sample_models/models/gpt2-4.0b.toml --hold method --set method=host \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --set devices=4\n"
      "  sluice tune sample_models/models/gpt2-4.0b.toml --devices 1..10 --density 0.01 \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml");
  command->callback([arguments, &exit_code] {
    const Status status = TuneCommand(*arguments).run();
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
