#pragma once
// The argument that names a run's database: the file, or the folder of the run (OUTPUT) for the
// run.db in it.
//
// Thread contract: main thread, before parsing.

#include <CLI/CLI.hpp>
#include <string>

namespace sluice::cli {

// A folder that has no run.db but one of each rank: the command wants one of them, or reads them as
// one run (cli/whole_run.h), and gets the folder.
enum class FolderOfRanks : std::uint8_t { refuse, allow };

// The value of an option that names a run becomes the database's path.
void take_database_of(CLI::Option& option, FolderOfRanks ranks = FolderOfRanks::refuse);

CLI::Option* add_run_argument(CLI::App& command, const std::string& name, std::string& path,
                              const std::string& what, FolderOfRanks ranks = FolderOfRanks::refuse);

}  // namespace sluice::cli
