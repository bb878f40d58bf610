#include "cli/run_argument.h"

#include <filesystem>

#include "profiler/analyze/rank_records.h"

namespace sluice::cli {

CLI::Option* add_run_argument(CLI::App& command, const std::string& name, std::string& path,
                              const std::string& what) {
  return command.add_option(name, path, what)
      ->required()
      ->transform(CLI::Validator(
          [](std::string& given) {
            given = database_of(given);
            if (analyze::rank_databases_in(given).empty()) return std::string();
            return given + ": has the records of several ranks; name one of them, as " + given +
                   "/rank-0/run.db, or make one of all first: sluice merge " + given;
          },
          "", "database"));
}

std::vector<std::string> databases_of_ranks(const std::vector<std::string>& paths) {
  std::vector<std::string> databases;
  for (const std::string& path : paths) {
    const std::vector<std::string> ranks = analyze::rank_databases_in(path);
    if (ranks.empty()) {
      databases.push_back(database_of(path));
    } else {
      databases.insert(databases.end(), ranks.begin(), ranks.end());
    }
  }
  return databases;
}

std::string database_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  const std::filesystem::path database = std::filesystem::path(path) / "run.db";
  return std::filesystem::exists(database, error) ? database.string() : path;
}

}  // namespace sluice::cli
