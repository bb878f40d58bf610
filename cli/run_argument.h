#pragma once
// The argument that names a run's database: the file, or the folder of the run (OUTPUT) for the
// run.db in it.
//
// Thread contract: main thread, before parsing.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sluice::cli {

CLI::Option* add_run_argument(CLI::App& command, const std::string& name, std::string& path,
                              const std::string& what);

// The database of each rank, for a folder of a run of several ranks (OUTPUT); other paths as
// database_of() has them.
std::vector<std::string> databases_of_ranks(const std::vector<std::string>& paths);

// The run.db of a folder that has one; any other path as it is.
std::string database_of(const std::string& path);

}  // namespace sluice::cli
