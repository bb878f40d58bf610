#pragma once
// The one way to read a TOML file: bounded in size and depth before the parser sees it, and with
// the parser's exceptions as errors ("FILE:LINE: ...", ErrorCode::config).
//
// Thread contract: free functions.

#include <toml++/toml.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::toml_file {

// The largest of sample_models/ has 4 kB.
inline constexpr std::int64_t kSizeMaxBytes = 1 << 20;

// `kind` is for messages: "platform file". A file that cannot be read is not_found or io; one that
// is too large is config, and no more than kSizeMaxBytes of it are read.
Result<std::string> read(const std::string& path, std::string_view kind);

// `path` is for messages; the text may come from elsewhere, such as a run database.
Result<toml::table> parse(std::string_view toml, const std::string& path);

}  // namespace sluice::toml_file
