// `sluice knobs`, `set`, `snapshot` and `stop`: a live run, seen and changed from
// another terminal.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/shell_quoted.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/run_argument.h"
#include "cli/terminal.h"
#include "core/control/live_change.h"
#include "core/tune/like_run.h"

namespace sluice::cli {
namespace {

using control::ChangeEvent;
using control::ChangeState;
using control::Message;
using control::RequestKind;

struct LiveArguments {
  std::string database;
  std::vector<std::string> settings;
  std::string revert_if;
  std::int64_t watch_steps = 0;
  bool no_wait = false;
  bool recorded = false;
  bool json = false;
};

constexpr int kRangeColumn = 33;

// Bytes are written with their unit.
std::string range_of(const control::Knob& knob) {
  return knob.unit.empty() || knob.unit == "bytes" ? knob.values : knob.values + " " + knob.unit;
}

void print_knobs_json(const std::string& run, const std::vector<control::Knob>& knobs) {
  nlohmann::json all = nlohmann::json::array();
  for (const control::Knob& knob : knobs) {
    nlohmann::json& one = all.emplace_back(nlohmann::json({{"key", knob.key},
                                                           {"value", knob.value},
                                                           {"type", knob.type},
                                                           {"values", knob.values},
                                                           {"unit", knob.unit},
                                                           {"default", knob.default_value},
                                                           {"safe_point", "step"},
                                                           {"help", knob.help}}));
    if (knob.min) one["min"] = *knob.min;
    if (knob.max) one["max"] = *knob.max;
  }
  print_lines(json_text(nlohmann::json({{"run", run}, {"knobs", all}}), -1) + "\n");
}

void print_knobs(const std::vector<control::Knob>& knobs) {
  const int columns = terminal_columns();
  for (const control::Knob& knob : knobs) {
    const std::string head = fmt::format("  {:<17} {:<12} ", knob.key, knob.value);
    print_lines(head + in_column(range_of(knob), columns, kRangeColumn));
    print_lines(std::string(kRangeColumn, ' ') + in_column(knob.help, columns, kRangeColumn));
  }
}

// --recorded: of a run that is over, as they were last; a new run like it may have others.
Result<int> list_recorded_knobs(const LiveArguments& arguments) {
  ASSIGN_OR_RETURN(const settings::RunConfig config,
                   of_database(tune::config_like(arguments.database, {})));
  const std::vector<control::Knob> knobs = settings::knobs(config);
  if (arguments.json) {
    print_knobs_json(config.files.name, knobs);
    return kDone;
  }
  print("Knobs of {} as they were last:\n\n", config.files.name);
  print_knobs(knobs);
  return kDone;
}

Result<int> list_knobs(const LiveArguments& arguments) {
  if (arguments.recorded) return list_recorded_knobs(arguments);
  ASSIGN_OR_RETURN(const auto client, control::connect_to_run(arguments.database));
  ASSIGN_OR_RETURN(const Message answer,
                   client->ask({.kind = RequestKind::knobs}, control::kLiveAnswer));
  if (arguments.json) {
    print_knobs_json(client->greeting().run, answer.knobs);
    return kDone;
  }
  print_lines(wrapped(fmt::format("Knobs of {} (process {}), each taken over between two steps:",
                                  client->greeting().run, client->greeting().pid),
                      terminal_columns(), "  ") +
              "\n");
  print_knobs(answer.knobs);
  print("\nChange one: {} set {} {}=VALUE\n", program(), shell_quoted(arguments.database),
        answer.knobs.front().key);
  return kDone;
}

void print_event(const ChangeEvent& event, const LiveArguments& arguments) {
  if (arguments.json) {
    const nlohmann::json json = {{"state", change_state_name(event.state)},
                                 {"change", event.change},
                                 {"step", event.step},
                                 {"settings", event.settings},
                                 {"message", event.message}};
    print_lines(json_text(json, -1) + "\n");
    return;
  }
  const std::string settings = fmt::format("{}", fmt::join(event.settings, " "));
  std::string said;
  switch (event.state) {
    case ChangeState::in_force:
      said = fmt::format("In force after step {}: {}", event.step, settings);
      break;
    case ChangeState::kept:
      said = fmt::format("Kept: {}", event.message);
      break;
    case ChangeState::reverted:
      said = fmt::format("Reverted after step {}: {}. Now {}", event.step, event.message, settings);
      break;
    case ChangeState::refused:
    case ChangeState::superseded:
      return;  // an error, said by whoever asked
  }
  print_lines(wrapped(said, terminal_columns(), "  "));
  flush_lines();
}

Result<int> set_knobs(const LiveArguments& arguments) {
  for (const std::string& setting : arguments.settings) {
    if (setting.find('=') == std::string::npos) {
      return make_error(ErrorCode::config, "{}: expected key=value, as in buffers=4", setting);
    }
  }
  ASSIGN_OR_RETURN(const auto client, control::connect_to_run(arguments.database));
  control::SetRequest set;
  set.settings = arguments.settings;
  set.revert_if = arguments.revert_if;
  set.watch_steps = arguments.watch_steps;
  ASSIGN_OR_RETURN(const Message answer, control::ask_for_change(*client, set));
  if (arguments.no_wait) {
    print("Asked for: comes after step {}\n", answer.from_step - 1);
    return kDone;
  }
  ASSIGN_OR_RETURN(ChangeEvent event,
                   control::await_change(*client, answer.change, is_interrupted));
  print_event(event, arguments);
  if (arguments.revert_if.empty()) return kDone;
  if (!arguments.json) print("Watching: {}\n", arguments.revert_if);
  flush_lines();
  ASSIGN_OR_RETURN(event, control::await_change(*client, answer.change, is_interrupted));
  print_event(event, arguments);
  return event.state == ChangeState::reverted ? kTakenBack : kDone;
}

Result<int> keep_snapshot(const LiveArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, control::connect_to_run(arguments.database));
  ASSIGN_OR_RETURN(const Message subscribed,
                   client->ask({.kind = RequestKind::subscribe}, control::kLiveAnswer));
  static_cast<void>(subscribed);
  ASSIGN_OR_RETURN(const Message answer,
                   client->ask({.kind = RequestKind::snapshot}, control::kLiveAnswer));
  ASSIGN_OR_RETURN(const control::SnapshotEvent kept,
                   control::await_snapshot(*client, answer.snapshot, is_interrupted));
  if (arguments.json) {
    const nlohmann::json json = {
        {"step", kept.step}, {"path", kept.path}, {"bytes", kept.size_bytes}};
    print_lines(json_text(json, -1) + "\n");
    return kDone;
  }
  print("Kept step {} in {} ({}).\nGo on from it with --resume --set state_dir={}\n", kept.step,
        kept.path, format_bytes(kept.size_bytes), kept.path);
  return kDone;
}

Result<int> stop_run(const LiveArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, control::connect_to_run(arguments.database));
  ASSIGN_OR_RETURN(const Message answer,
                   client->ask({.kind = RequestKind::stop}, control::kLiveAnswer));
  static_cast<void>(answer);
  print("{} stops after this step and commits it. Go on later with --resume.\n",
        client->greeting().run);
  return kDone;
}

CLI::App* live_command(CLI::App& app, int& exit_code, const char* name, const char* what,
                       std::shared_ptr<LiveArguments> arguments,
                       Result<int> (*run)(const LiveArguments&)) {
  CLI::App* command = app.add_subcommand(name, what);
  add_run_argument(*command, "database", arguments->database,
                   "the run's database (OUTPUT/run.db) or folder, or the socket beside it");
  command->callback([arguments, run, &exit_code] {
    install_interrupt_handler();
    const Result<int> code = run(*arguments);
    exit_code = code.ok() ? *code : report_error(code.error());
  });
  return command;
}

}  // namespace

void add_live_commands(CLI::App& app, int& exit_code) {
  auto knobs = std::make_shared<LiveArguments>();
  CLI::App* list =
      live_command(app, exit_code, "knobs", "What can be changed in a live run", knobs, list_knobs);
  list->add_flag("--recorded", knobs->recorded,
                 "of a run that is over: as its record has them, for a new run like it");
  list->add_flag("--json", knobs->json, "print one JSON object and nothing else");
  list->footer("Example: sluice knobs out/tiny/run.db");

  auto set = std::make_shared<LiveArguments>();
  CLI::App* change = live_command(app, exit_code, "set",
                                  "Change knobs of a live run, between two steps", set, set_knobs);
  change->add_option("settings", set->settings, "key=value, as many as you like: all or none")
      ->required();
  change->add_option("--revert-if", set->revert_if,
                     "revert it if it does harm: 'step_time>+5%' (or forward, backward, update, "
                     "loss)");
  change
      ->add_option("--watch-steps", set->watch_steps,
                   "how many steps are compared (default: 5, after the one it begins in)")
      ->check(number_range(std::int64_t{1}, std::int64_t{10'000}));
  change->add_flag("--no-wait", set->no_wait, "do not wait until it is in force");
  change->add_flag("--json", set->json, "print a JSON object for each thing that happens");
  change->footer(
      "Prints when it took effect, or why not (exit code 2, and nothing has changed). With "
      "--revert-if it waits for what becomes of it: exit code 5 if the run took the change back.\n"
      "Examples:\n"
      "  sluice set out/tiny/run.db buffers=6\n"
      "  sluice set out/tiny/run.db pipeline=serial --revert-if 'step_time>+5%'\n"
      "  sluice set out/tiny/run.db device_map=3,1,1,1 density=0.05");

  auto snapshot = std::make_shared<LiveArguments>();
  CLI::App* keep = live_command(app, exit_code, "snapshot",
                                "Keep the state of a live run, as it is after this step", snapshot,
                                keep_snapshot);
  keep->add_flag("--json", snapshot->json, "print one JSON object and nothing else");
  keep->footer(
      "Copies the last commit to OUTPUT/snapshots/step-NNNNNN between two steps, and waits for "
      "it.\n"
      "Examples:\n"
      "  sluice snapshot out/tiny/run.db\n"
      "  sluice state out/tiny/snapshots/step-000120 --verify\n"
      "  sluice train sample_models/runs/tiny.toml --resume --set output=out/other \\\n"
      "      --set state_dir=out/tiny/snapshots/step-000120");

  auto stop = std::make_shared<LiveArguments>();
  CLI::App* end = live_command(app, exit_code, "stop",
                               "Stop a run after its current step (commits first)", stop, stop_run);
  end->footer("Example: sluice stop out/tiny/run.db");
}

}  // namespace sluice::cli
