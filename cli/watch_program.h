#pragma once
// The command of `sluice watch --run`: run by a shell each time that a condition begins to hold.
//
// Thread contract: main thread; blocks until the command ends.

#include <string>
#include <utility>
#include <vector>

namespace sluice::cli {

using Variables = std::vector<std::pair<std::string, std::string>>;

// "" where it ended with 0, else what became of it: "ended with exit code 3". It has this program's
// environment with `variables`, and no standard input.
std::string run_by_shell(const std::string& command, const Variables& variables);

}  // namespace sluice::cli
