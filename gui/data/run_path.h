#pragma once
// The text of a path. The process knows its working folder, so no disk is asked.
//
// Thread contract: free functions, any thread.

#include <string>
#include <vector>

namespace sluice::gui {

// From the root, without "." and ".."; as it is where there is no working folder.
std::string absolute_path(const std::string& path);
// Behind the last slash.
std::string file_name(const std::string& path);
// `typed`, longer by what all of `completions` (gui/data/run_list.h) begin with.
std::string completed(const std::string& typed, const std::vector<std::string>& completions);

}  // namespace sluice::gui
