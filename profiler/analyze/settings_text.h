#pragma once
// The settings that stand in a TOML file, as lines that can be compared: two files that say the
// same give the same lines, whatever their comments, spaces and order of sections are.
//
// Thread contract: free functions.

#include <string>
#include <string_view>
#include <vector>

namespace sluice::analyze {

// "layers = 4", "link.host: read = 1", "device 2: memory = 1" (the second [[device]]), sorted.
// Comments are left out, and the file's own `name`. A value over several lines is one for each.
// Text that is not TOML gives its lines as they are: this compares, it does not judge.
std::vector<std::string> settings_in(std::string_view toml);

}  // namespace sluice::analyze
