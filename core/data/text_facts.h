#pragma once
// What a run learns as it lies on disk: which text it is, and that it is one, or which token file.
//
// Thread contract: free functions.

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/stops.h"

namespace sluice::data {

struct TextFacts {
  std::int64_t size_bytes = 0;
  std::uint64_t checksum = 0;  // FNV-1a of its bytes; of a token file: TokenFile::facts()
  std::string tokens_of = {};  // a token file's format (core/data/token_layout.h); empty: a text
  bool operator==(const TextFacts&) const = default;
};

// Reads it from end to end. ErrorCode::config for a text that is empty, no regular file, or a token
// file of Sluice, whose bytes are no text; ErrorCode::cancelled where `stops` says so.
Result<TextFacts> look_at_text(const std::string& path, const Stops& stops = {});
// The same of its first bytes alone; the file has as many.
Result<TextFacts> look_at_begin(const std::string& path, std::int64_t size_bytes);

// "COMMAND makes it", for a text that is not there; empty where no command is known.
std::string how_to_get_text(const std::string& path);

}  // namespace sluice::data
