#include "gui/data/like_run.h"

#include "base/shell_quoted.h"

namespace sluice::gui {

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
  std::string text = "sluice";
  for (const std::string& argument : like_arguments(run, output))
    text += " " + shell_quoted(argument);
  return text;
}

}  // namespace sluice::gui
