#pragma once
// The bytes that each token stands for, from the file NAME.vocab beside a token file NAME.ANY
// (docs/tokens.md): for the text that a model writes, and for what that begins with. Training needs
// none.
//
// Thread contract: immutable.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::data {

class TokenVocabulary {
 public:
  // None: there is no such file. ErrorCode::corrupt for one that is foreign, cut or damaged, or has
  // grown; ErrorCode::unsupported for another version.
  static Result<std::optional<TokenVocabulary>> load_beside(const std::string& token_path);
  static std::string path_beside(const std::string& token_path);

  std::int64_t token_count() const { return static_cast<std::int64_t>(ends_.size()); }
  // Empty for a token that stands for no bytes.
  std::string_view text_of(std::int32_t token) const;
  // Tokens below `vocabulary` whose bytes are `text`, each the longest that fits: not always the
  // tokenizer's own, which may prefer shorter ones. ErrorCode::config where none fits.
  Result<std::vector<std::int32_t>> tokens_of(std::string_view text, std::int64_t vocabulary) const;

 private:
  TokenVocabulary(std::string path, std::vector<std::uint32_t> ends, std::string bytes);
  static Result<TokenVocabulary> parse(std::string_view bytes, const std::string& path);

  std::string path_;
  std::vector<std::uint32_t> ends_;  // in bytes_; a token begins where the one before it ends
  std::string bytes_;
};

}  // namespace sluice::data
