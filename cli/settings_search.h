#pragma once
// `sluice tune`: which settings make a step shortest, and with --devices which number of devices is
// the best buy.
//
// Thread contract: main thread.

#include "base/status.h"
#include "cli/tune_arguments.h"

namespace sluice::cli {

// Searches, prints the answer, and with --apply changes the live run to it.
Status search_settings(const TuneArguments& arguments);

}  // namespace sluice::cli
