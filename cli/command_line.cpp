#include "cli/command_line.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/escaped_text.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/refusal.h"
#include "base/shell_quoted.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/old_names.h"
#include "cli/paint.h"
#include "cli/program.h"

namespace sluice::cli {
namespace {

struct Needed {
  std::string_view command, argument, words;
};
// Where an argument's description is no answer.
constexpr std::array kNeeded = {
    Needed{"compare", "a", "compare needs two runs: sluice compare A B"},
    Needed{"compare", "b", "compare needs two runs: sluice compare A B"},
    Needed{"export", "--format",
           "which format? --format chrome (Perfetto), csv, nsys or tensorboard"}};

// "show: database is missing: the run database" of the library's "database is required". Empty: it
// is another error.
std::string missing_argument(const CLI::App& command, const std::string& what) {
  constexpr std::string_view kEnd = " is required";
  if (!what.ends_with(kEnd)) return "";
  const std::string name = what.substr(0, what.size() - kEnd.size());
  for (const Needed& needed : kNeeded) {
    if (needed.command == command.get_name() && needed.argument == name)
      return std::string(needed.words);
  }
  const CLI::Option* option = command.get_option_no_throw(name);
  if (option == nullptr) return "";
  return fmt::format("{}: {} is missing: {}", command.get_name(), name, option->get_description());
}

// "--plattform": an option that the command does not have, with the nearest that it has. Empty: the
// word is no option.
std::string strange_option(const CLI::App& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  if (!name.starts_with('-')) return "";
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
  }
  return fmt::format("{}: there is no option {}{}", command.get_name(), name,
                     did_you_mean(name, names));
}

// For every command, so that it may stand before or behind its name.
void add_colour_option(CLI::App& app) {
  app.add_option_function<std::string>(
         "--color",
         [](const std::string& when) {
           if (!choose_colours(when)) {
             throw CLI::ValidationError("--color " + when + ": there is auto, always and never");
           }
         },
         "auto, always or never (auto: on a terminal, without NO_COLOR)")
      ->type_name("WHEN");
}

std::string error_line(const std::string& what) {
  return "sluice: error: " + escaped_for_terminal(what, LineFeeds::keep) + "; see --help\n";
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands.push_back(command->get_name());
  }
  return commands;
}

// One line like any other error of ours.
std::string usage_error(const CLI::App* app, const CLI::Error& error) {
  std::string what = error.what();
  const std::vector<std::string> strange = app->remaining();
  if (app->get_subcommands().empty()) {
    const std::vector<std::string> commands = names_of(*app);
    what = strange.empty() ? fmt::format("which command? One of {}", fmt::join(commands, ", "))
                           : fmt::format("there is no command '{}'{}", strange.front(),
                                         did_you_mean(strange.front(), commands));
    return error_line(what);
  }
  const CLI::App* innermost = app->get_subcommands().front();
  while (!innermost->get_subcommands().empty()) innermost = innermost->get_subcommands().front();
  const CLI::App& command = *innermost;
  if (!names_of(command).empty()) {
    return error_line(fmt::format("{}: which of its commands? {}", command.get_name(),
                                  fmt::join(names_of(command), ", ")));
  }
  const std::vector<std::string> strange_here = command.remaining();
  if (!strange_here.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string words = strange_option(command, strange_here.front());
    if (!words.empty()) what = words;
  }
  const std::string missing = missing_argument(command, what);
  return error_line(missing.empty() ? what : missing);
}

void say_new_words(const std::vector<std::string>& words) {
  std::string command = program();
  for (const std::string& word : words) command += " " + shell_quoted(word);
  log_info("this command goes by another name now: " + command);
}

}  // namespace

std::unique_ptr<CLI::App> make_command_line(int& exit_code) {
  auto made = std::make_unique<CLI::App>(
      "Sluice trains language models whose optimizer state is too big for memory, on storage and "
      "computational storage devices, and shows where every byte and every kernel goes.");
  CLI::App& app = *made;
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.require_subcommand(1);
  app.failure_message(usage_error);
  app.footer(
      "Exit codes: 0 done, 1 the run failed, 2 usage or configuration, 3 a --fail-if tripped, 4 a "
      "--fail-if was not judged since the runs cannot be compared, 5 a change was taken back by "
      "its --revert-if.\n"
      "Example: sluice train sample_models/runs/tiny.toml --steps 50");
  app.formatter(std::make_shared<HelpFormat>());
  app.get_formatter()->column_width(26);
  add_colour_option(app);
  add_train_command(app, exit_code);
  add_live_commands(app, exit_code);
  add_state_command(app, exit_code);
  add_weights_command(app, exit_code);
  add_record_command(app, exit_code);
  add_show_command(app, exit_code);
  add_watch_command(app, exit_code);
  add_follow_commands(app, exit_code);
  add_merge_command(app, exit_code);
  add_runs_command(app, exit_code);
  add_compare_command(app, exit_code);
  add_report_command(app, exit_code);
  add_export_command(app, exit_code);
  add_simulate_command(app, exit_code);
  add_tune_command(app, exit_code);
  add_replay_command(app, exit_code);
  add_mcp_command(app, exit_code);
  add_calibrate_command(app, exit_code);
  add_doctor_command(app, exit_code);
  for (CLI::App* command : app.get_subcommands(nullptr)) add_colour_option(*command);
  return made;
}

namespace {

bool is_command(CLI::App& app, const std::string& word) {
  const std::vector<CLI::App*> commands = app.get_subcommands(nullptr);
  return std::ranges::any_of(commands, [&](CLI::App* of) { return of->get_name() == word; });
}

// What `record` and `follow` run, behind `--`, comes through as it is: CLI11 would take "[1,2]" for
// a list.
std::vector<std::string> with_others_kept(CLI::App& app,
                                          const std::vector<const char*>& arguments) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  const auto command =
      std::ranges::find_if(words, [&](const std::string& word) { return is_command(app, word); });
  if (command == words.end() || (*command != "record" && *command != "follow")) return words;
  const auto mark = std::find(command, words.end(), "--");
  if (mark == words.end()) return words;
  for (auto word = mark + 1; word != words.end(); ++word) word->insert(0, 1, kOthersWord);
  return words;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  int exit_code = kDone;
  const std::unique_ptr<CLI::App> app = make_command_line(exit_code);
  const Status parsed = at_refusal_border([&] {
    std::vector<const char*> arguments(argv, argv + argc);
    const std::optional<std::vector<std::string>> now =
        in_new_words({arguments.begin() + std::min(argc, 1), arguments.end()});
    if (now) {
      say_new_words(*now);
      arguments.resize(1);
      for (const std::string& word : *now) arguments.push_back(word.c_str());
    }
    const std::vector<std::string> words = with_others_kept(*app, arguments);
    std::ranges::transform(words, arguments.begin(), &std::string::c_str);
    try {
      app->parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::ParseError& error) {
      exit_code = app->exit(error) == 0 ? kDone : kUsage;
    }
    return ok_status();
  });
  return parsed.ok() ? exit_code : report_error(parsed.error());
}

}  // namespace sluice::cli
