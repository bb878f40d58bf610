#pragma once
// The words of `sluice train` around its steps: what begins, how a run goes on, where it stopped.
//
// Thread contract: the thread that trains.

#include <string>

#include "base/status.h"
#include "core/answers/training.h"

namespace sluice::plan {
struct FurtherSteps;
}
namespace sluice::settings {
struct RunConfig;
}

namespace sluice::cli {

struct TrainArguments;

struct TrainWords {
  const TrainArguments& arguments;
  const settings::RunConfig& config;  // as asked for, and with the shards that were chosen
  train::TrainingRun& run;
  int rank_count = 1;

  std::string header() const;
  std::string format_line() const;  // where the state was kept in another format; "" elsewhere
  answers::GoingOn going_on(const train::TrainReport& report) const;
  // The error with what there is to go on from, if that is still there.
  Status how_it_stopped(const Error& error) const;

 private:
  std::string parameter_words() const;
  std::string initial_state_words() const;
  std::int64_t committed_step() const;
  std::string next_rate_line() const;  // a schedule may go on otherwise than it was begun
  std::string recipe_lines() const;    // settings that this resume learns with, and that are new
  std::string resharded_line() const;  // where the state was that of other ranks
  // "": the schedule goes on as it was begun.
  std::string schedule_words(const plan::FurtherSteps& further, std::int64_t last_step) const;
  std::string resume_command(const plan::FurtherSteps& further) const;
};

}  // namespace sluice::cli
