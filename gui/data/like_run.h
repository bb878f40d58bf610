#pragma once
// A run like a recorded one with other settings, and the command that begins it.
//
// Thread contract: plain data; free functions, any thread.

#include <string>
#include <vector>

namespace sluice::gui {

struct LikeRun {
  std::string database;  // the recorded one's
  bool is_simulated = false;
  std::vector<std::string> settings;  // "key=value", over those of the record
};
// Behind the program's name. `output`: a folder; of a simulated run the database.
std::vector<std::string> like_arguments(const LikeRun& run, const std::string& output);
// All of it, as a shell reads it.
std::string like_command(const LikeRun& run, const std::string& output);

}  // namespace sluice::gui
