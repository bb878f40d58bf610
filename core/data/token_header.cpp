#include "core/data/token_header.h"

#include <bit>
#include <span>

#include "base/fnv.h"
#include "core/data/token_marks.h"

namespace sluice::data {
namespace {

static_assert(std::endian::native == std::endian::little,
              "token files are little-endian and read as they lie");

bool is_width(const TokenHeader& header) {
  const std::uint32_t width = header.bytes_per_token;
  return width == 1 || width == 2 || (width == 4 && header.version >= 2);
}

std::uint64_t most_vocabulary(std::uint32_t bytes_per_token) {
  return bytes_per_token == 4 ? kMostVocabulary : std::uint64_t{1} << (8 * bytes_per_token);
}

// Bytes that follow the header. The count of tokens is at most the file's size, so nothing wraps.
std::int64_t expected_payload(const TokenHeader& header) {
  const auto token_count = static_cast<std::int64_t>(header.token_count);
  return token_count * header.bytes_per_token +
         (header.has_marks() ? packed_mark_bytes(token_count) : 0) +
         (header.has_labels() ? token_count / header.window_tokens * kLabelBytes : 0);
}

const char* said_beside(const TokenHeader& header) {
  if (header.has_labels()) return " with 2 bits of marks each, and labels of 4 bytes a record,";
  return header.has_marks() ? " with 2 bits of marks each" : "";
}

}  // namespace

std::uint64_t TokenHeader::expected_header_checksum() const {
  return fnv1a(std::as_bytes(std::span(this, 1)).first(offsetof(TokenHeader, header_checksum)));
}

Status check_token_header(const TokenHeader& header, std::int64_t file_bytes,
                          const std::string& path) {
  if (header.magic != kTokenMagic) {
    return make_error(
        ErrorCode::corrupt,
        "{}: not a token file (the 8 bytes at offset 0 are not SLCTOKEN); a text must "
        "be made into tokens first",
        path);
  }
  if (header.version == 0 || header.version > kTokenVersion) {
    return make_error(
        ErrorCode::unsupported,
        "{}: token format version {} at offset 8, this program reads versions 1 to {}; make "
        "the file again from its text",
        path, header.version, kTokenVersion);
  }
  if (header.header_checksum != header.expected_header_checksum()) {
    return make_error(ErrorCode::corrupt,
                      "{}: the header is damaged (checksum {:016x} at offset 56, its bytes give "
                      "{:016x}); make the file again from its text",
                      path, header.header_checksum, header.expected_header_checksum());
  }
  if (!is_width(header) || header.vocabulary == 0 ||
      header.vocabulary > most_vocabulary(header.bytes_per_token)) {
    return make_error(ErrorCode::corrupt,
                      "{}: {} bytes a token (offset 12) with a vocabulary of {} (offset 24) is not "
                      "a token file this program writes; tokens take 1 or 2 bytes, or from version "
                      "2 on 4",
                      path, header.bytes_per_token, header.vocabulary);
  }
  const bool has_windows = header.version >= kVersionOfWindows;
  if (has_windows ? header.window_tokens == 0 || header.token_count % header.window_tokens != 0
                  : header.window_tokens != 0) {
    return make_error(ErrorCode::corrupt,
                      "{}: windows of {} tokens (offset 28) do not belong to version {} with {} "
                      "tokens (offset 16): from version {} on those are whole windows, and before "
                      "there are none; make the file again",
                      path, header.window_tokens, header.version, header.token_count,
                      kVersionOfWindows);
  }
  const std::int64_t payload = file_bytes - kTokenHeaderBytes;
  if (header.token_count > static_cast<std::uint64_t>(payload) ||
      expected_payload(header) != payload) {
    return make_error(ErrorCode::corrupt,
                      "{}: {} tokens of {} bytes{} are announced at offset 16, but {} bytes follow "
                      "the header: the file is cut or has grown; make it again from its text",
                      path, header.token_count, header.bytes_per_token, said_beside(header),
                      payload);
  }
  return ok_status();
}

}  // namespace sluice::data
