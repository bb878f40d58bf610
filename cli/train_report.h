#pragma once
// What `sluice train` says at the end: for people, and as JSON. `resume_command` goes on with the
// run.
//
// Thread contract: free functions.

#include <string>

#include "core/train/trainer.h"

namespace sluice::cli {

std::string train_report_text(train::TrainingRun& run, const train::TrainReport& report,
                              TimeNs dur_ns, const std::string& resume_command);
std::string train_report_json(train::TrainingRun& run, const train::TrainReport& report,
                              const std::string& digest, const std::string& resume_command);

}  // namespace sluice::cli
