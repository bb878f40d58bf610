#pragma once
// How deep a TOML text nests, before it is parsed: toml++ makes and frees a level by recursion, so
// a key of 50,000 parts ends with an overflow of the stack.
//
// Thread contract: free functions.

#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::toml_file {

// Model, platform and run files need three.
inline constexpr int kDepthMax = 32;

// A config error at the first place that is deeper than kDepthMax. The parts of a table's header
// count, those of a key, and each array and inline table around a value; what stands in a text or a
// comment does not. A text that is no TOML is measured up to its first fault, where the parser
// stops.
Status check_depth(std::string_view toml, const std::string& path);

}  // namespace sluice::toml_file
