#pragma once
// `sluice tune --placement`: where everything lives in a step, chosen by simulating it.
//
// Thread contract: main thread.

#include "base/status.h"
#include "cli/tune_arguments.h"

namespace sluice::cli {

// Searches, and prints the answer.
Status search_placement(const TuneArguments& arguments);

}  // namespace sluice::cli
