#pragma once
// The first 64 bytes of a token file (docs/token_format.md), as they lie on disk: little-endian,
// no padding.
//
// Thread contract: plain data.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace sluice::data {

inline constexpr std::array<char, 8> kTokenMagic = {'S', 'L', 'C', 'T', 'O', 'K', 'E', 'N'};
// The newest. Files without marks are written as version 1, or 2 with 4 bytes a token, which older
// programs read.
inline constexpr std::uint32_t kTokenVersion = 5;
inline constexpr std::uint32_t kVersionWithMarks = 3;
inline constexpr std::uint32_t kVersionOfWindows = 4;
inline constexpr std::uint32_t kVersionOfRecords = 5;  // each a window, with a label

// The most with 4 bytes a token: tokens are signed in a batch.
inline constexpr std::int64_t kMostVocabulary = std::int64_t{1} << 31;

struct TokenHeader {
  std::array<char, 8> magic = kTokenMagic;
  std::uint32_t version = 1;
  std::uint32_t bytes_per_token = 1;
  std::uint64_t token_count = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t window_tokens = 0;   // from version 4 on: records are in such windows
  std::uint64_t token_checksum = 0;  // FNV-1a of all that follows the header
  std::uint64_t source_bytes = 0;    // the text the tokens were made from
  std::uint64_t source_checksum = 0;
  std::uint64_t header_checksum = 0;  // FNV-1a of the 56 bytes before it

  bool has_marks() const { return version >= kVersionWithMarks; }
  bool has_labels() const { return version >= kVersionOfRecords; }
  std::uint64_t expected_header_checksum() const;
};
static_assert(sizeof(TokenHeader) == 64);
static_assert(offsetof(TokenHeader, header_checksum) == 56);

inline constexpr std::int64_t kTokenHeaderBytes = sizeof(TokenHeader);

// Everything that can be said about a header and the size of its file without reading the tokens.
Status check_token_header(const TokenHeader& header, std::int64_t file_bytes,
                          const std::string& path);

}  // namespace sluice::data
