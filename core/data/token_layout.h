#pragma once
// Which format a token file has, and where its tokens lie (docs/tokens.md). A format is recognised
// by its first bytes; nanoGPT's has no header, so it is asked for, or is what a file ".bin" without
// a known beginning is taken for.
//
// Thread contract: free functions.

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"

namespace sluice::data {

class FileDescriptor;

enum class TokenFormat : std::uint8_t { sluice, llm_c, nanogpt };

// As a text's facts and messages have it: "llm.c".
std::string name_of(TokenFormat format);

struct TokenLayout {
  TokenFormat format = TokenFormat::sluice;
  std::int64_t first_offset = 0;     // of token 0
  std::int64_t bytes_per_token = 1;  // 1, 2 or 4
  std::int64_t token_count = 0;
  // Every token is below it: by the header, or by the width of a token.
  std::int64_t vocabulary = 0;
  // FNV-1a of the tokens and their marks, where the file has it.
  std::optional<std::uint64_t> checksum = {};
  bool has_marks = false;          // right behind the tokens (core/data/token_marks.h)
  std::int64_t window_tokens = 0;  // records are in windows of so many; 0: they are not
  bool has_labels = false;         // right behind the marks, one a window, which has one record
};

// None: no token file, so a text. ErrorCode::config for tokens of a kind that is known and not
// read.
Result<std::optional<TokenFormat>> recognised_format(const std::string& path);

// Everything that can be said without reading the tokens. ErrorCode::corrupt for a file that is
// foreign or cut, or has grown; ErrorCode::unsupported for a version that is not known.
Result<TokenLayout> token_layout(const FileDescriptor& file, const std::string& path,
                                 TokenFormat format);

}  // namespace sluice::data
