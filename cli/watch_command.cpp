#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/run_argument.h"
#include "cli/watch_program.h"
#include "profiler/watch/metrics_server.h"
#include "profiler/watch/watcher.h"

namespace sluice::cli {
namespace {

constexpr std::chrono::milliseconds kPause{200};  // about a flush interval of the recorder

struct WatchArguments {
  std::string database;
  std::vector<std::string> when;
  std::string command;
  int metrics_port = -1;  // below 0: nobody asked
  bool once = false;
  bool until_end = false;
  bool fail = false;
};

class WatchCommand {
 public:
  explicit WatchCommand(const WatchArguments& arguments) : arguments_(arguments) {}

  Result<int> run() {
    std::vector<watch::Condition> conditions;
    for (const std::string& text : arguments_.when) {
      ASSIGN_OR_RETURN(watch::Condition condition, watch::parse_condition(text));
      conditions.push_back(std::move(condition));
    }
    if (conditions.empty() && arguments_.metrics_port < 0) {
      return make_error(ErrorCode::config,
                        "what to watch for? --when 'step_time>+20%', --when 'loss=nan', or "
                        "--metrics PORT");
    }
    watch::Watcher watcher(std::move(conditions));
    ASSIGN_OR_RETURN(watch::RunFollower run, watch::RunFollower::open(arguments_.database));
    RETURN_IF_ERROR(run.look());
    RETURN_IF_ERROR(check_end(run));
    RETURN_IF_ERROR(start_metrics());
    ProgressLine progress;
    for (bool is_first = true;; is_first = false) {
      if (!is_first) RETURN_IF_ERROR(run.look());
      for (const watch::Event& event : watcher.judge(run, monotonic_now_ns())) {
        progress.finish();
        tell(event);
        if (arguments_.once || is_interrupted()) return exit_code();
      }
      if (is_over(run)) return exit_code();
      progress.show_elapsed(fmt::format("{}: step {}",
                                        run.is_live() ? "watching" : "not being recorded now",
                                        run.steps().empty() ? 0 : run.steps().back().id + 1));
      std::this_thread::sleep_for(kPause);
      if (is_interrupted()) return exit_code();
    }
  }

 private:
  Status start_metrics() {
    if (arguments_.metrics_port < 0) return ok_status();
    ASSIGN_OR_RETURN(metrics_,
                     watch::MetricsServer::start(arguments_.database, arguments_.metrics_port));
    log_info("metrics at " + metrics_->address());
    return ok_status();
  }

  Status check_end(const watch::RunFollower& run) const {
    if (!arguments_.until_end || run.info().number_in_force("steps", 0) > 0) return ok_status();
    return make_error(ErrorCode::config,
                      "--until-end: the record does not say how many steps the run is to do, as "
                      "that of a program of its own; leave it out");
  }

  // With --until-end a run that was killed, and that somebody resumes, is waited for until it has
  // done all its steps. Metrics of a record that was finished before are served until Ctrl-C.
  bool is_over(const watch::RunFollower& run) {
    was_live_ = was_live_ || run.is_live();
    if (run.is_live()) return false;
    if (metrics_ != nullptr && !was_live_) return false;
    if (!arguments_.until_end) return true;
    const double steps = run.info().number_in_force("steps", 0);
    return !run.steps().empty() && static_cast<double>(run.steps().back().id + 1) >= steps;
  }

  void tell(const watch::Event& event) {
    has_held_ = true;
    print("{}  step {}  {}: {}\n", event.time, event.step, event.condition, event.words);
    flush_lines();
    if (arguments_.command.empty()) return;
    const std::string failure =
        run_by_shell(arguments_.command, {{"SLUICE_RUN", arguments_.database},
                                          {"SLUICE_STEP", fmt::format("{}", event.step)},
                                          {"SLUICE_CONDITION", event.condition},
                                          {"SLUICE_VALUE", fmt::format("{}", event.value)}});
    if (!failure.empty())
      log_warning(fmt::format("--run: at step {} the command {}", event.step, failure));
  }

  int exit_code() const { return has_held_ && arguments_.fail ? kTripped : kDone; }

  const WatchArguments& arguments_;
  std::unique_ptr<watch::MetricsServer> metrics_;
  bool was_live_ = false;
  bool has_held_ = false;
};

void add_options(CLI::App& command, WatchArguments& arguments) {
  add_run_argument(command, "database", arguments.database,
                   "the run's database (OUTPUT/run.db) or folder; live or finished");
  command
      .add_option("--when", arguments.when,
                  "a condition: step_time, tokens_per_second, loss, grad_norm, loss_scale, "
                  "lost_records or no_step_for, > or <, and a bound; with % against the median of "
                  "the steps before; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  command.add_option("--run", arguments.command,
                     "what a shell runs each time that a condition begins to hold, with "
                     "SLUICE_RUN, SLUICE_STEP, SLUICE_CONDITION and SLUICE_VALUE");
  command
      .add_option("--metrics", arguments.metrics_port,
                  "a port of 127.0.0.1 where Prometheus finds the run's figures, at /metrics; "
                  "0: any free one, which is said")
      ->check(number_range(std::int64_t{0}, std::int64_t{65'535}));
  CLI::Option* once =
      command.add_flag("--once", arguments.once, "end when the first condition holds");
  command
      .add_flag("--until-end", arguments.until_end,
                "go on while the run is not being recorded, until it has done all its steps: it "
                "may be resumed")
      ->excludes(once);
  command.add_flag("--fail", arguments.fail, "exit with 3 if a condition held");
}

}  // namespace

void add_watch_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<WatchArguments>();
  CLI::App* command = app.add_subcommand(
      "watch",
      "Follows a run and says when something is wrong with it; its figures for Prometheus");
  add_options(*command, *arguments);
  command->footer(
      "Ends with the run, or by Ctrl-C. A finished record is judged as if it came step by step.\n"
      "Examples:\n"
      "  sluice watch out/tiny/run.db --when 'step_time>+20%' --when loss=nan\n"
      "  sluice watch out/tiny/run.db --when 'no_step_for>60s' --until-end \\\n"
      "      --run 'mail -s \"$SLUICE_CONDITION at step $SLUICE_STEP\" me < /dev/null'\n"
      "  sluice watch out/tiny/run.db --metrics 9100");
  command->callback([arguments, &exit_code] {
    leave_interrupts_unsaid();
    install_interrupt_handler();
    const Result<int> code = WatchCommand(*arguments).run();
    exit_code = code.ok() ? *code : report_error(wrong_database(code.error()));
  });
}

}  // namespace sluice::cli
