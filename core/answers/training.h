#pragma once
// The end of a training run as JSON.
//
// Thread contract: the thread that trained.

#include <string>
#include <vector>

#include "core/answers/json.h"
#include "core/stages/stage.h"

namespace sluice::runtime {
class EmulatedClock;
}
namespace sluice::train {
class TrainingRun;
struct TrainReport;
}  // namespace sluice::train

namespace sluice::answers {

// The command that goes on with a run; empty: none can.
struct GoingOn {
  std::string command;
  std::string schedule;  // what it does to the learning rate, where that is not what was begun
};

// The stages that this machine was too slow for, the latest first.
std::vector<stages::Stage> late_stages(const runtime::EmulatedClock& clock);
// With which the clock could have kept the modelled times.
double needed_time_scale(const runtime::EmulatedClock& clock, double time_scale);

// {steps, losses, seconds, bytes, parameters, state_digest, db, clock, method, mode, ...}
Json training_json(train::TrainingRun& run, const train::TrainReport& report,
                   const std::string& state_digest, const GoingOn& going_on);

}  // namespace sluice::answers
