#include "cli/settings_search.h"

#include "base/figure_text.h"
#include "cli/computing_memory.h"
#include "cli/exit_code.h"
#include "cli/fitted_start.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/sweep.h"
#include "cli/terminal.h"
#include "cli/tune_report.h"
#include "core/calibrate/platform_text.h"
#include "core/control/live_change.h"
#include "core/platform/platform_text.h"
#include "core/tune/fitted_run.h"
#include "core/tune/machine_tuning.h"

namespace sluice::cli {
namespace {

class SettingsSearch {
 public:
  explicit SettingsSearch(const TuneArguments& arguments) : arguments_(arguments) {
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
    answers::TuningAnswer answer{.tuning = tuning,
                                 .written_platform = arguments_.written_platform,
                                 .applies = arguments_.apply};
    if (!arguments_.devices.empty()) return compare_devices(answer);
    ASSIGN_OR_RETURN(const tune::TunedMachine tuned, tuning.tuned());
    progress_.finish();
    if (!arguments_.json) print_lines(fitted(tune_text(answer, tuned), terminal_columns()));
    if (arguments_.apply) {
      ASSIGN_OR_RETURN(answer.applied_after_step, apply(tuned.result.changes));
    }
    if (arguments_.json) print_lines(json_text(answers::tuning_json(answer, tuned), 2) + "\n");
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
                      "run (RUN.db) brings its own, and of a run file (RUN.toml) there is "
                      "--placement alone",
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
    ASSIGN_OR_RETURN(client_, control::connect_to_run(arguments_.start));
    ASSIGN_OR_RETURN(const control::Message answer,
                     client_->ask({.kind = control::RequestKind::knobs}, control::kLiveAnswer));
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
    ASSIGN_OR_RETURN(tune::FittedRun fitted,
                     fitted_start({arguments_.start, arguments_.model, arguments_.platform}));
    RETURN_IF_ERROR(write_platform(fitted));
    if (arguments_.activations) {
      ASSIGN_OR_RETURN(choice_.layers_under, memory_of(fitted.run));
    }
    return tune::MachineTuning(std::move(fitted), choice_);
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
    ASSIGN_OR_RETURN(const control::Message answer, control::ask_for_change(*client_, set));
    ASSIGN_OR_RETURN(const control::ChangeEvent applied,
                     control::await_change(*client_, answer.change, is_interrupted));
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
  Status compare_devices(const answers::TuningAnswer& answer) {
    const auto counts = parse_sweep_values(arguments_.devices);
    if (!counts.ok()) return counts.error().with_context("--devices");
    ASSIGN_OR_RETURN(const std::vector<tune::TunedMachine> machines,
                     answer.tuning.tuned_for_devices(*counts));
    progress_.finish();
    print_lines(arguments_.json ? json_text(answers::devices_json(answer, machines), 2) + "\n"
                                : fitted(devices_text(answer, machines), terminal_columns()));
    return ok_status();
  }

  const TuneArguments& arguments_;
  tune::TuneChoice choice_;
  ProgressLine progress_;
  std::unique_ptr<control::ControlClient> client_;  // --apply: to the run
};

}  // namespace

Status search_settings(const TuneArguments& arguments) { return SettingsSearch(arguments).run(); }

}  // namespace sluice::cli
