#include "cli/run_argument.h"

#include "base/shell_quoted.h"
#include "cli/program.h"
#include "profiler/analyze/rank_records.h"

namespace sluice::cli {

void take_database_of(CLI::Option& option, FolderOfRanks ranks) {
  option.transform(CLI::Validator(
      [ranks](std::string& given) {
        given = analyze::database_of(given);
        const bool is_refused = ranks == FolderOfRanks::refuse;
        if (!is_refused || analyze::rank_databases_in(given).empty()) return std::string();
        return given + ": has the records of several ranks; name one of them, as " + given +
               "/rank-0/run.db, or make one of all first: " + program() + " merge " +
               shell_quoted(given);
      },
      "", "database"));
}

CLI::Option* add_run_argument(CLI::App& command, const std::string& name, std::string& path,
                              const std::string& what, FolderOfRanks ranks) {
  CLI::Option* const option = command.add_option(name, path, what)->required();
  take_database_of(*option, ranks);
  return option;
}

}  // namespace sluice::cli
