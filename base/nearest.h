#pragma once
// For messages about a misspelt key: which of the known words is meant.
//
// Thread contract: free functions, any thread.

#include <span>
#include <string>
#include <string_view>

namespace sluice {

// The candidate with the least edit distance to `word`; empty if none is near enough to be a likely
// misspelling.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

// " (did you mean 'buffers'?)" or an empty string.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace sluice
