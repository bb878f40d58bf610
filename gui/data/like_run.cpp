#include "gui/data/like_run.h"

#include <algorithm>

#include "base/program_name.h"
#include "base/shell_quoted.h"
#include "gui/data/run_facts.h"

namespace sluice::gui {

LikeRun like_run_of(const RunFacts& facts, const std::string& database,
                    const std::vector<std::string>& settings) {
  return {.database = database,
          .is_simulated = facts.is_simulated(),
          .settings = settings,
          .rank_count = std::max(1, static_cast<int>(facts.info.meta_number("ranks", 1))),
          .is_of_rank = !facts.info.meta_value("rank").empty()};
}

std::vector<std::string> launcher_words(const LikeRun& run) {
  return run.is_simulated ? std::vector<std::string>() : launcher_of_ranks(run.rank_count);
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

std::string like_command(const LikeRun& run, const std::string& output,
                         const std::string& program) {
  std::string text;
  for (const std::string& word : launcher_words(run)) text += word + " ";
  text += program;
  for (const std::string& argument : like_arguments(run, output))
    text += " " + shell_quoted(argument);
  return text;
}

}  // namespace sluice::gui
