#include "cli/run_argument.h"

#include <filesystem>

namespace sluice::cli {

CLI::Option* add_run_argument(CLI::App& command, const std::string& name, std::string& path,
                              const std::string& what) {
  return command.add_option(name, path, what)
      ->required()
      ->transform(CLI::Validator(
          [](std::string& given) {
            given = database_of(given);
            return std::string();
          },
          "", "database"));
}

std::string database_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  const std::filesystem::path database = std::filesystem::path(path) / "run.db";
  return std::filesystem::exists(database, error) ? database.string() : path;
}

}  // namespace sluice::cli
