#pragma once
// Which run databases are being written on this machine now. The kernel says who holds a lock
// (/proc/locks), so nothing is locked to find out, and no run is disturbed.
//
// Thread contract: free functions that read /proc; not the frame thread.

#include <string>
#include <vector>

namespace sluice::gui {

bool is_being_recorded(const std::string& database_path);

// Absolute paths, as far as this user may see the processes.
std::vector<std::string> live_runs();

}  // namespace sluice::gui
