#pragma once
// One function a command: adds it to the command line, with its help and an example, and says what
// to run when it is chosen. The program's exit code is left in `exit_code`.
//
// Thread contract: main thread, before parsing.

#include <CLI/CLI.hpp>

namespace sluice::cli {

// What each word of a command behind `--` (of `record` and `follow`) has in front of it.
inline constexpr char kOthersWord = '\x1f';

void add_train_command(CLI::App& app, int& exit_code);
void add_live_commands(CLI::App& app, int& exit_code);
void add_state_command(CLI::App& app, int& exit_code);
void add_weights_command(CLI::App& app, int& exit_code);
void add_simulate_command(CLI::App& app, int& exit_code);
void add_tune_command(CLI::App& app, int& exit_code);
void add_record_command(CLI::App& app, int& exit_code);
void add_replay_command(CLI::App& app, int& exit_code);
void add_show_command(CLI::App& app, int& exit_code);
void add_watch_command(CLI::App& app, int& exit_code);
void add_follow_commands(CLI::App& app, int& exit_code);
void add_merge_command(CLI::App& app, int& exit_code);
void add_runs_command(CLI::App& app, int& exit_code);
void add_compare_command(CLI::App& app, int& exit_code);
void add_report_command(CLI::App& app, int& exit_code);
void add_export_command(CLI::App& app, int& exit_code);
void add_mcp_command(CLI::App& app, int& exit_code);
void add_calibrate_command(CLI::App& app, int& exit_code);
void add_doctor_command(CLI::App& app, int& exit_code);

}  // namespace sluice::cli
