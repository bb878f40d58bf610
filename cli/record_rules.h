#pragma once
// The rules by which `sluice record` knows what names of ranges and paths of files mean: those of
// record_rules.toml, and before them a person's own.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::cli {

// The lines of profiler/inject/rules.h, of the files in their order. ErrorCode::config, with file,
// line and the nearest right word: an unknown key, a word that means nothing, a rule without a
// pattern.
Result<std::string> rule_lines(const std::vector<std::string>& files);

// The line that makes each range of that name a step. ErrorCode::config: it is no name.
Result<std::string> step_line(const std::string& marker);

}  // namespace sluice::cli
