#include "base/figure_text.h"
#include "cli/commands.h"
#include "cli/computing_memory.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/live_change.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/run_argument.h"
#include "cli/sweep.h"
#include "cli/terminal.h"
#include "cli/tune_report.h"
#include "core/calibrate/platform_text.h"
#include "core/platform/platform_text.h"
#include "core/tune/machine_tuning.h"

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
  bool activations = false;
  bool json = false;
};

class TuneCommand {
 public:
  explicit TuneCommand(const TuneArguments& arguments) : arguments_(arguments) {
    choice_.overrides = arguments.overrides;
    choice_.held = arguments.held;
    choice_.density_min = arguments.density;
    choice_.on_try = [this](double share, int tried) { show_progress(share, tried); };
  }

  Status run() {
    RETURN_IF_ERROR(check_start());
    if (arguments_.apply) RETURN_IF_ERROR(connect());
    RETURN_IF_ERROR(tune::check_held(choice_, "--hold"));
    ASSIGN_OR_RETURN(const tune::MachineTuning tuning, machine_tuning());
    TuneReport report{.tuning = tuning,
                      .written_platform = arguments_.written_platform,
                      .applies = arguments_.apply};
    if (!arguments_.devices.empty()) return compare_devices(report);
    ASSIGN_OR_RETURN(const tune::TunedMachine tuned, tuning.tuned());
    progress_.finish();
    if (!arguments_.json) print_lines(fitted(tune_text(report, tuned), terminal_columns()));
    if (arguments_.apply) {
      ASSIGN_OR_RETURN(report.applied_after_step, apply(tuned.result.changes));
    }
    if (arguments_.json) print_lines(tune_json(report, tuned) + "\n");
    return ok_status();
  }

 private:
  // How many settings a search will try is not known; how many machines are tuned is.
  void show_progress(double share, int tried) {
    const std::string what = fmt::format("{} settings simulated", format_whole(tried));
    share > 0 ? progress_.show(share, what) : progress_.show_elapsed(what);
  }

  bool is_of_run() const { return tune::is_database_path(arguments_.start); }

  Status check_start() const {
    if (is_of_run()) return check_output();
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

  // Before anything is simulated: a run that is over cannot be changed, and a live one only by its
  // knobs.
  Status connect() {
    if (!is_of_run() || !arguments_.devices.empty()) {
      return make_error(ErrorCode::config, "--apply changes the knobs of a live run (RUN.db){}",
                        arguments_.devices.empty()
                            ? fmt::format(", and {} is read as a model", arguments_.start)
                            : ", and --devices compares machines");
    }
    ASSIGN_OR_RETURN(client_, connect_to_run(arguments_.start));
    ASSIGN_OR_RETURN(const control::Message answer,
                     client_->ask({.kind = control::RequestKind::knobs}, kLiveAnswer));
    choice_.changeable.emplace();
    for (const control::Knob& knob : answer.knobs) choice_.changeable->push_back(knob.key);
    return ok_status();
  }

  Result<tune::MachineTuning> machine_tuning() {
    if (!is_of_run()) {
      if (arguments_.activations) choice_.layers_under = modelled_memory();
      return tune::MachineTuning(tune::ModelOnPlatform{arguments_.start, arguments_.platform},
                                 choice_);
    }
    auto run = tune::open_recorded_run({arguments_.start, arguments_.model, arguments_.platform});
    if (!run.ok()) return wrong_database(run.error());
    auto fitted = tune::fitted_to(std::move(*run));
    if (!fitted.ok()) return fitted.error().with_context(arguments_.start);
    RETURN_IF_ERROR(write_platform(*fitted));
    if (arguments_.activations) {
      ASSIGN_OR_RETURN(choice_.layers_under, memory_of(fitted->run));
    }
    return tune::MachineTuning(std::move(*fitted), choice_);
  }

  // All of the proposal or nothing. The step after which it is in force; none where nothing was
  // proposed.
  Result<std::optional<std::int64_t>> apply(const std::vector<tune::TuneChange>& changes) {
    if (changes.empty()) return std::optional<std::int64_t>();
    control::SetRequest set;
    set.who = "tune";
    for (const tune::TuneChange& change : changes) {
      set.settings.push_back(change.key + "=" + change.to);
    }
    install_interrupt_handler();  // steps may be long
    ASSIGN_OR_RETURN(const control::Message answer, ask_for_change(*client_, set));
    ASSIGN_OR_RETURN(const control::ChangeEvent applied, await_change(*client_, answer.change));
    if (!arguments_.json) {
      print("In force after step {}: {}\n", applied.step,
            fmt::format("{}", fmt::join(set.settings, " ")));
    }
    return std::optional(applied.step);
  }

  Status check_output() const {
    if (arguments_.written_platform.empty()) return ok_status();
    return calibrate::check_output(arguments_.written_platform, arguments_.force
                                                                    ? calibrate::IfThere::replace
                                                                    : calibrate::IfThere::refuse);
  }

  Status write_platform(const tune::FittedRun& fitted) const {
    if (arguments_.written_platform.empty()) return ok_status();
    const std::string head =
        fmt::format("# Fitted by `sluice tune` to {} recorded step{} of the run {}: {}.\n",
                    fitted.fit.step_count, fitted.fit.step_count == 1 ? "" : "s", fitted.run.name,
                    fitted.run.mode);
    return calibrate::write_platform(head + platform::platform_text(fitted.fit.platform),
                                     arguments_.written_platform);
  }

  // --devices: each number of devices tuned for itself, and what a second of the step costs.
  Status compare_devices(const TuneReport& report) {
    const auto counts = parse_sweep_values(arguments_.devices);
    if (!counts.ok()) return counts.error().with_context("--devices");
    ASSIGN_OR_RETURN(const std::vector<tune::TunedMachine> machines,
                     report.tuning.tuned_for_devices(*counts));
    progress_.finish();
    print_lines(arguments_.json ? devices_json(report, machines)
                                : fitted(devices_text(report, machines), terminal_columns()));
    return ok_status();
  }

  const TuneArguments& arguments_;
  tune::TuneChoice choice_;
  ProgressLine progress_;
  std::unique_ptr<control::ControlClient> client_;  // --apply: to the run
};

}  // namespace

void add_tune_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command = app.add_subcommand(
      "tune", "Which settings would make a step shortest on a machine, by simulating it");
  add_run_argument(*command, "start", arguments->start,
                   "the model's shape (MODEL.toml), or a recorded run (RUN.db), to which the "
                   "platform is fitted first");
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
      ->check(number_range(1e-6, 1.0));
  command->add_option("--devices", arguments->devices,
                      "1..10 or 2,4,8: tune each number of devices, with prices and what a step "
                      "costs");
  command->add_option("--write-platform", arguments->written_platform,
                      "write the platform that was fitted to the recorded run to this file");
  command->add_flag("--force", arguments->force, "replace that file if it is there")
      ->needs("--write-platform");
  command
      ->add_flag("--apply", arguments->apply,
                 "change the live run to what is proposed: knobs only, all of them "
                 "between two steps or none")
      ->excludes(overrides);  // the proposal is one for the run as it is
  command
      ->add_flag("--activations", arguments->activations,
                 "choose each layer's activations, too, under the caps of memory, as sluice plan "
                 "does; not with --apply")
      ->excludes("--apply");
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer(
      "The search varies method, pipeline, subgroup_elements, buffers, wire, overlap, "
      "gradient_tier\n"
      "and, where the devices are not alike, device_map; none changes the training result. "
      "--density\n"
      "also allows compressed gradients, which does.\n"
      "A run may be finished, stopped or live; it needs four recorded steps. Its findings about "
      "the\n"
      "machine come first: how far simulation was off, which rates differ, what remains.\n"
      "Examples:\n"
      "  sluice tune out/tiny/run.db --hold subgroup_elements\n"
      "  sluice tune out/tiny/run.db --apply\n"
      "  sluice tune sample_models/models/gpt2-4.0b.toml \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --set devices=10\n"
      "  sluice tune sample_models/models/gpt2-4.0b.toml --set method=host \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --hold method\n"
      "  sluice tune sample_models/models/gpt2-4.0b.toml --devices 1..10 \\\n"
      "      --platform sample_models/platforms/smartssd-a5000.toml --density 0.01");
  command->callback([arguments, &exit_code] {
    const Status status = TuneCommand(*arguments).run();
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
