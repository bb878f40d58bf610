#include "gui/data/like_run.h"

#include <algorithm>

#include "base/shell_quoted.h"

namespace sluice::gui {

LikeRun like_run_of(const RunFacts& facts, const std::string& database,
                    const std::vector<std::string>& settings) {
  return {.database = database,
          .is_simulated = facts.is_simulated(),
          .settings = settings,
          .rank_count = std::max(1, static_cast<int>(facts.info.meta_number("ranks", 1))),
          .is_of_rank = !facts.info.meta_value("rank").empty()};
}

// As docs/collective.md says that it is to be started.
std::vector<std::string> launcher_words(const LikeRun& run) {
  if (run.is_simulated || run.rank_count == 1) return {};
  return {"mpirun", "-n", std::to_string(run.rank_count), "--mca", "mpi_yield_when_idle", "1"};
}

std::vector<std::string> like_arguments(const LikeRun& run, const std::string& output) {
  std::vector<std::string> arguments = {run.is_simulated ? "simulate" : "train", "--like",
                                        run.database};
  for (const std::string& setting : run.settings)
    arguments.insert(arguments.end(), {"--set", setting});
  if (run.is_simulated) {
    arguments.insert(arguments.end(), {"--db", output});
  } else {
    arguments.insert(arguments.end(), {"--set", "output=" + output});
  }
  return arguments;
}

std::string like_command(const LikeRun& run, const std::string& output) {
  std::string text;
  for (const std::string& word : launcher_words(run)) text += word + " ";
  text += "sluice";
  for (const std::string& argument : like_arguments(run, output))
    text += " " + shell_quoted(argument);
  return text;
}

}  // namespace sluice::gui
