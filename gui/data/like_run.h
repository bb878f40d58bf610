#pragma once
// A run like a recorded one with other settings, and the command that begins it.
//
// Thread contract: plain data; free functions, any thread.

#include <string>
#include <vector>

namespace sluice::gui {

struct RunFacts;

struct LikeRun {
  std::string database;  // the recorded one's
  bool is_simulated = false;
  std::vector<std::string> settings;  // "key=value", over those of the record
  int rank_count = 1;
  bool is_of_rank = false;  // the record of one of them, OUTPUT/rank-2/run.db
};
LikeRun like_run_of(const RunFacts& facts, const std::string& database,
                    const std::vector<std::string>& settings);

// In front of the program's name: mpirun, where the run has several ranks.
std::vector<std::string> launcher_words(const LikeRun& run);
// Behind the program's name. `output`: a folder; of a simulated run the database.
std::vector<std::string> like_arguments(const LikeRun& run, const std::string& output);
// All of it, as a shell reads it; `program` is pasted_sluice().
std::string like_command(const LikeRun& run, const std::string& output, const std::string& program);

}  // namespace sluice::gui
