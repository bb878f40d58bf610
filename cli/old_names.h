#pragma once
// Old names of commands, which answer for a release with the command that has taken their place.
//
// Thread contract: free functions.

#include <optional>
#include <string>
#include <vector>

namespace sluice::cli {

// The command line of today for one that begins with an old name; none for every other. Both are
// without the program's own name.
std::optional<std::vector<std::string>> in_new_words(const std::vector<std::string>& words);

}  // namespace sluice::cli
