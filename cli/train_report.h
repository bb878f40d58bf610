#pragma once
// The text of `sluice train` at its end.
//
// Thread contract: free function.

#include <string>

#include "base/units.h"
#include "core/answers/training.h"

namespace sluice::cli {

std::string train_report_text(train::TrainingRun& run, const train::TrainReport& report,
                              TimeNs dur_ns, const answers::GoingOn& going_on);

}  // namespace sluice::cli
