#include "cli/run_argument.h"

#include <algorithm>
#include <filesystem>

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

// OUTPUT/rank-0/run.db and so on, in order of their names.
std::vector<std::string> rank_databases_in(const std::string& folder) {
  std::vector<std::string> databases;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path database = entry->path() / "run.db";
    if (!entry->path().filename().string().starts_with("rank-")) continue;
    if (std::error_code none; fs::exists(database, none)) databases.push_back(database.string());
  }
  std::ranges::sort(databases);
  return databases;
}

}  // namespace

CLI::Option* add_run_argument(CLI::App& command, const std::string& name, std::string& path,
                              const std::string& what) {
  return command.add_option(name, path, what)
      ->required()
      ->transform(CLI::Validator(
          [](std::string& given) {
            const std::string database = database_of(given);
            if (database == given && !rank_databases_in(given).empty()) {
              return given + ": has the records of several ranks; name one of them, as " + given +
                     "/rank-0/run.db, or make one of all first: sluice merge " + given;
            }
            given = database;
            return std::string();
          },
          "", "database"));
}

std::vector<std::string> databases_of_ranks(const std::vector<std::string>& paths) {
  std::vector<std::string> databases;
  for (const std::string& path : paths) {
    const std::vector<std::string> ranks = rank_databases_in(path);
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
