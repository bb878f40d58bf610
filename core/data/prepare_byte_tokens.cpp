#include <filesystem>

#include "core/data/text_facts.h"
#include "core/data/token_file.h"
#include "core/data/token_header.h"
#include "core/data/whole_file.h"

namespace sluice::data {
namespace {

Result<TokenHeader> read_header(const std::string& token_path) {
  TokenHeader header;
  header.magic = {};
  ASSIGN_OR_RETURN(const FileDescriptor file, open_for_reading(token_path));
  RETURN_IF_ERROR(read_at(file, std::as_writable_bytes(std::span(&header, 1)), 0, token_path));
  return header;
}

// Whether the tokens are there already and whole. A damaged token file is made again; a file that
// never was one is somebody's, and is not overwritten.
Result<bool> is_up_to_date(const std::string& token_path, const TextFacts& source) {
  if (!std::filesystem::exists(token_path)) return false;
  ASSIGN_OR_RETURN(const TokenHeader header, read_header(token_path));
  if (header.magic != kTokenMagic) {
    return make_error(ErrorCode::config,
                      "{}: exists and is not a token file, so it is not overwritten; name another "
                      "path or remove it",
                      token_path);
  }
  if (header.source_bytes != static_cast<std::uint64_t>(source.size_bytes) ||
      header.source_checksum != source.checksum) {
    return false;
  }
  return TokenFile::open(token_path).ok();
}

TokenHeader header_for(const TextFacts& source) {
  TokenHeader header;
  header.token_count = static_cast<std::uint64_t>(source.size_bytes);
  header.vocabulary = 256;
  header.token_checksum = source.checksum;  // the token is the byte
  header.source_bytes = static_cast<std::uint64_t>(source.size_bytes);
  header.source_checksum = source.checksum;
  header.header_checksum = header.expected_header_checksum();
  return header;
}

}  // namespace

Status prepare_byte_tokens(const std::string& text_path, const std::string& token_path,
                           const Stops& stops) {
  ASSIGN_OR_RETURN(const TextFacts source, look_at_text(text_path, stops));
  return prepare_byte_tokens(text_path, source, token_path, stops);
}

Status prepare_byte_tokens(const std::string& text_path, const TextFacts& source,
                           const std::string& token_path, const Stops& stops) {
  ASSIGN_OR_RETURN(const bool up_to_date, is_up_to_date(token_path, source));
  if (up_to_date) return ok_status();

  ASSIGN_OR_RETURN(const FileDescriptor text, open_for_reading(text_path));
  ASSIGN_OR_RETURN(NewFile tokens, NewFile::create(token_path));
  const TokenHeader header = header_for(source);
  RETURN_IF_ERROR(tokens.write(std::as_bytes(std::span(&header, 1)), 0));
  Status written = ok_status();
  std::int64_t offset = kTokenHeaderBytes;
  const auto write = [&](std::span<const std::byte> bytes) {
    if (written.ok()) written = tokens.write(bytes, offset);
    offset += static_cast<std::int64_t>(bytes.size());
  };
  RETURN_IF_ERROR(for_each_piece(text, 0, text_path, write, stops));
  RETURN_IF_ERROR(std::move(written));
  return tokens.publish();
}

}  // namespace sluice::data
