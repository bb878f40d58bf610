// `sluice follow` and `sluice relay`: a run on another machine, as a copy here that follows it
// (docs/following.md).

#include <unistd.h>

#include <filesystem>

#include "base/figure_text.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/run_argument.h"
#include "profiler/relay/far_run.h"
#include "profiler/relay/follower.h"
#include "profiler/relay/relay.h"

namespace sluice::cli {
namespace {

struct FollowArguments {
  std::vector<std::string> run;  // ssh://..., or the words of a command
  std::string output = "followed.db";
  std::string size_max = "16GB";
  std::string far_program = "sluice";
  bool control = false;
  bool force = false;
};

Result<std::vector<std::string>> line_command(const FollowArguments& arguments) {
  std::vector<std::string> words = arguments.run;
  if (words.front().starts_with(kOthersWord)) {
    if (arguments.control) {
      return make_error(ErrorCode::config,
                        "--control goes with ssh://, which forwards the run's socket");
    }
    for (std::string& word : words) {
      if (word.starts_with(kOthersWord)) word.erase(0, 1);
    }
    return words;
  }
  if (words.size() > 1 || !relay::is_far_run(words.front())) {
    return make_error(ErrorCode::config,
                      "{}: name a run as ssh://[user@]host[:port]/path/to/run.db, or a command "
                      "behind --",
                      words.front());
  }
  ASSIGN_OR_RETURN(const relay::FarRun run, relay::parse_far_run(words.front()));
  std::string socket;
  if (arguments.control) socket = std::filesystem::absolute(arguments.output).string() + ".socket";
  const std::string why_not = relay::why_no_control(run, socket);
  if (arguments.control && !why_not.empty())
    return make_error(ErrorCode::config, "--control: {}", why_not);
  return relay::ssh_command(run, {.program = arguments.far_program, .control_socket = socket});
}

// Says what happens to the line, once each time.
class Told {
 public:
  explicit Told(std::string copy) : copy_(std::move(copy)) {}

  void tell(const relay::FollowState& state) {
    if (state.line != line_) say_change(state);
    line_ = state.line;
    last_ = state;
    progress_.show_elapsed(words_of(state));
  }
  void finish() {
    progress_.finish();
    print("{}: {} operations{}.\n", copy_, format_whole(last_.spans),
          last_.is_live ? "; the run goes on" : "");
  }
  void take_line_away() { progress_.finish(); }

 private:
  void say_change(const relay::FollowState& state) {
    progress_.finish();
    if (state.line == relay::LineState::cut)
      log_warning(fmt::format("the line is cut ({}); trying again", state.why));
    if (state.line == relay::LineState::following && line_ == relay::LineState::cut)
      log_info("the line is there again");
  }
  static std::string words_of(const relay::FollowState& state) {
    if (state.line == relay::LineState::connecting) return "connecting";
    if (state.line == relay::LineState::cut) return "cut, trying again";
    if (state.spans_left == 0) return fmt::format("{} operations", format_whole(state.spans));
    return fmt::format("{} operations, {} to come", format_whole(state.spans),
                       format_whole(state.spans_left));
  }

  const std::string copy_;
  ProgressLine progress_;
  relay::LineState line_ = relay::LineState::connecting;
  relay::FollowState last_;
};

Status follow(const FollowArguments& arguments) {
  relay::FollowOptions options{.copy = arguments.output, .replaces_others = arguments.force};
  ASSIGN_OR_RETURN(options.command, line_command(arguments));
  ASSIGN_OR_RETURN(options.size_bytes_max, parse_bytes(arguments.size_max));
  leave_interrupts_unsaid();
  install_interrupt_handler();
  outlive_readers(Lines::answer);
  options.stops = is_interrupted;
  Told told(arguments.output);
  options.tell = [&told](const relay::FollowState& state) { told.tell(state); };
  const Status status = relay::follow_run(options);
  told.take_line_away();
  if (status.ok()) told.finish();
  return status;
}

void add_follow_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<FollowArguments>();
  CLI::App* command =
      app.add_subcommand("follow", "Copies a run on another machine, and goes on while it does");
  command
      ->add_option("run", arguments->run,
                   "ssh://[user@]host[:port]/path/to/run.db, or behind -- a command whose output\n"
                   "is that of `sluice relay`")
      ->required();
  command->add_option("-o,--output", arguments->output,
                      "the copy (default: followed.db); one that is there goes on where it was");
  command->add_option("--size-max", arguments->size_max,
                      "how large the copy may get (default: 16GB)");
  command->add_option("--far-program", arguments->far_program,
                      "sluice at the other end (default: the one in its PATH)");
  command->add_flag("--control", arguments->control,
                    "forward the run's control socket, too: to OUTPUT.socket");
  command->add_flag("--force", arguments->force, "replace a copy of another recording");
  command->footer(
      "All that opens a run database opens the copy: the window, show, report, compare, watch. It\n"
      "ends with the run, or by Ctrl-C; a line that is cut is tried again. Nothing listens on a\n"
      "network: your own ssh runs `sluice relay` at the other end.\n"
      "Examples:\n"
      "  sluice follow ssh://trainer/home/ann/out/tiny/run.db -o tiny.db\n"
      "  sluice follow --control ssh://ann@trainer:2222/data/out/run.db\n"
      "  sluice follow -o tiny.db -- docker exec -i trainer sluice relay /out/tiny/run.db");
  command->callback([arguments, &exit_code] {
    const Status status = follow(*arguments);
    if (!status.ok()) exit_code = report_error(wrong_database(status.error()));
  });
}

Status relay_run(const std::string& database) {
  if (::isatty(STDOUT_FILENO) == 1) {
    return make_error(ErrorCode::config,
                      "its output is for `sluice follow`, which starts it; to look at a run there "
                      "is `sluice show {}`",
                      database);
  }
  outlive_readers(Lines::progress);
  return relay::serve_relay(database, STDIN_FILENO, STDOUT_FILENO);
}

void add_relay_command(CLI::App& app, int& exit_code) {
  auto database = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "relay", "The other end of `sluice follow`, which starts it: a run as a stream on stdout");
  add_run_argument(*command, "database", *database,
                   "the run's database (OUTPUT/run.db) or folder; live or finished");
  command->footer(
      "It reads that file, changes nothing and listens on nothing; it ends when its stdin does.\n"
      "docs/following.md has the form of the stream.\n"
      "Example:\n"
      "  sluice follow -- ssh trainer sluice relay out/tiny/run.db");
  command->callback([database, &exit_code] {
    const Status status = relay_run(*database);
    if (status.ok()) return;
    // What is wrong with the run is told in the stream.
    exit_code = ::isatty(STDOUT_FILENO) == 1 ? report_error(status.error())
                                             : exit_code_of(wrong_database(status.error()));
  });
}

}  // namespace

void add_follow_commands(CLI::App& app, int& exit_code) {
  add_follow_command(app, exit_code);
  add_relay_command(app, exit_code);
}

}  // namespace sluice::cli
