#pragma once
// The command line: every command with its options and its help.
//
// Thread contract: main thread.

#include <CLI/CLI.hpp>
#include <memory>

namespace sluice::cli {

// A command runs while its arguments are parsed, and leaves the program's exit code.
std::unique_ptr<CLI::App> make_command_line(int& exit_code);

// The exit code (cli/exit_code.h). What is wrong with the arguments is one line on stderr.
int run_command_line(int argc, const char* const* argv);

}  // namespace sluice::cli
