#pragma once
// The text of a path. The process knows its working folder, so no disk is asked.
//
// Thread contract: free functions, any thread.

#include <string>

namespace sluice::gui {

// From the root, without "." and ".."; as it is where there is no working folder.
std::string absolute_path(const std::string& path);
// Behind the last slash.
std::string file_name(const std::string& path);

}  // namespace sluice::gui
