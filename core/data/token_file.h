#pragma once
// Tokens on disk: a 64-byte header (magic "SLCTOKEN", version, bytes a token, token
// count, vocabulary, checksum of the tokens, size and checksum of the source text) and then the
// tokens (1 or 2 bytes each, little-endian). docs/token_format.md is its page. Byte-level tokens:
// the token is the byte, vocabulary 256.
//
// They are read, not mapped: of a mapped file that is cut meanwhile, or whose drive fails, the
// program hears by SIGBUS alone, in the middle of whatever it does.
//
// Thread contract: immutable after open.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "base/stops.h"
#include "core/data/text_facts.h"

namespace sluice::data {

class TokenFile {
 public:
  // Refuses a foreign, cut or damaged file, naming it and the offset.
  static Result<TokenFile> open(const std::string& path);

  TokenFile(TokenFile&&) noexcept;
  TokenFile& operator=(TokenFile&&) noexcept;
  ~TokenFile();

  std::int64_t token_count() const;
  std::int64_t vocabulary() const;
  // Tokens [first, first + tokens.size()), which have to be among token_count(). What has happened
  // to the file since it was opened is an error that names it and the offset.
  Status read(std::int64_t first, std::span<std::int32_t> tokens) const;
  const std::string& path() const;

 private:
  struct Opened;
  explicit TokenFile(std::unique_ptr<Opened> opened);
  std::unique_ptr<Opened> opened_;
};

// Makes a byte-level token file from any text; written beside and renamed, so a crash leaves no
// half file. If `token_path` is already made from this very text (size and checksum), nothing is
// done. Empty or missing text is an error. Where `stops` says so: ErrorCode::cancelled.
Status prepare_byte_tokens(const std::string& text_path, const std::string& token_path,
                           const Stops& stops = {});
// The same of a text that was looked at a moment ago.
Status prepare_byte_tokens(const std::string& text_path, const TextFacts& source,
                           const std::string& token_path, const Stops& stops = {});

}  // namespace sluice::data
