#pragma once
// Tokens on disk, whichever program wrote them (docs/tokens.md): Sluice's own files
// (docs/token_format.md), llm.c's and nanoGPT's.
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
#include "core/data/token_layout.h"
#include "core/data/token_marks.h"

namespace sluice::data {

// whole: each token and mark, and the checksum where the file has one; at the speed of its drive.
// spots: a MiB of it, at most, from begin to end; each token that is read later is looked at then.
enum class TokenCheck : std::uint8_t { whole, spots };

struct TokenFileOptions {
  TokenFormat format = TokenFormat::sluice;
  TokenCheck check = TokenCheck::whole;
  std::int64_t model_vocabulary = 0;  // every token has to be below it; 0: nobody asks
};

class TokenFile {
 public:
  // Refuses a foreign, cut or damaged file, and one with a token that its own or the model's
  // vocabulary does not have: by file, offset, number of the token and value. ErrorCode::config for
  // one whose marks leave nothing to learn. Where `stops` says so: ErrorCode::cancelled.
  static Result<TokenFile> open(const std::string& path, const TokenFileOptions& options = {},
                                const Stops& stops = {});

  TokenFile(TokenFile&&) noexcept;
  TokenFile& operator=(TokenFile&&) noexcept;
  ~TokenFile();

  std::int64_t token_count() const;
  // The file's own; where it says none, what a token of its width can be.
  std::int64_t vocabulary() const;
  // Tokens [first, first + tokens.size()), which have to be among token_count(). What has happened
  // to the file since it was opened, and a token of no vocabulary, is an error that names it and
  // the offset.
  Status read(std::int64_t first, std::span<std::int32_t> tokens) const;
  // The windows into which records are packed, or each is filled up: tokens in each, of which
  // token_count() is a multiple. 0: there are none.
  std::int64_t window_tokens() const;
  // Every label of a record is below it; 0: records have none, or there are none.
  std::int64_t label_count() const;
  // The label of the record in window number `window`, of a file with labels. The errors are those
  // of read().
  Result<std::int32_t> read_label(std::int64_t window) const;
  // Whether the file says which tokens are learnt and where documents begin.
  bool has_marks() const;
  // The marks of tokens [first, first + marks.size()), one byte a token: kLearnt, kDocumentBegins,
  // both or neither (0..3); of records with labels kOfRecord and kOfSecondText. Without marks in
  // the file each is kLearnt. The errors are those of read().
  Status read_marks(std::int64_t first, std::span<std::uint8_t> marks) const;
  const std::string& path() const;
  // Which file it is: its size, and the checksum that its header has, or else that of its spots.
  const TextFacts& facts() const;

 private:
  struct Opened;
  explicit TokenFile(std::unique_ptr<Opened> opened);
  std::unique_ptr<Opened> opened_;
};

// Makes a byte-level token file from any text (the token is the byte, vocabulary 256); written
// beside and renamed, so a crash leaves no half file. If `token_path` is already made from this
// very text (size and checksum), nothing is done. Empty or missing text is an error. Where `stops`
// says so: ErrorCode::cancelled.
Status prepare_byte_tokens(const std::string& text_path, const std::string& token_path,
                           const Stops& stops = {});
// The same of a text that was looked at a moment ago.
Status prepare_byte_tokens(const std::string& text_path, const TextFacts& source,
                           const std::string& token_path, const Stops& stops = {});

}  // namespace sluice::data
