#pragma once
// Which run databases are being written on this machine now (storage/rundb/recording_now.h).
//
// Thread contract: free functions that read /proc; not the frame thread.

#include <string>
#include <vector>

#include "storage/rundb/recording_now.h"

namespace sluice::gui {

using rundb::is_being_recorded;

// Absolute paths, as far as this user may see the processes.
std::vector<std::string> live_runs();

}  // namespace sluice::gui
