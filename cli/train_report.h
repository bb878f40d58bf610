#pragma once
// What `sluice train` says at the end: for people, and as JSON.
//
// Thread contract: free functions.

#include <string>

#include "base/units.h"

namespace sluice::train {
class TrainingRun;
struct TrainReport;
}  // namespace sluice::train

namespace sluice::cli {

// The command that goes on with a run; empty: none can.
struct GoingOn {
  std::string command;
  std::string schedule;  // what it does to the learning rate, where that is not what was begun
};

std::string train_report_text(train::TrainingRun& run, const train::TrainReport& report,
                              TimeNs dur_ns, const GoingOn& going_on);
std::string train_report_json(train::TrainingRun& run, const train::TrainReport& report,
                              const std::string& digest, const GoingOn& going_on);

}  // namespace sluice::cli
