#include "core/data/token_file.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fnv.h"
#include "core/data/token_header.h"
#include "core/data/whole_file.h"

namespace sluice::data {
namespace {

constexpr std::size_t kWindowPieceBytes = 4096;  // of a window, on the stack

// Reads all tokens once, in pieces: a token file may be larger than the memory a run is given.
Status check_tokens(const FileDescriptor& file, const TokenHeader& header,
                    const std::string& path) {
  std::uint64_t checksum = kFnvOffset;
  std::uint64_t out_of_range_at = ~std::uint64_t{0};
  std::int64_t offset = kTokenHeaderBytes;
  const bool all_values_legal = header.vocabulary == std::uint64_t{1} << 8 * header.bytes_per_token;
  const auto look = [&](std::span<const std::byte> bytes) {
    checksum = fnv1a(bytes, checksum);
    for (std::size_t i = 0; !all_values_legal && i < bytes.size(); i += header.bytes_per_token) {
      std::uint16_t token = 0;
      std::memcpy(&token, &bytes[i], header.bytes_per_token);
      if (token >= header.vocabulary) out_of_range_at = std::min(out_of_range_at, offset + i);
    }
    offset += static_cast<std::int64_t>(bytes.size());
  };
  RETURN_IF_ERROR(for_each_piece(file, kTokenHeaderBytes, path, look));
  if (checksum != header.token_checksum) {
    return make_error(ErrorCode::corrupt,
                      "{}: the tokens from offset {} on are damaged (checksum {:016x}, the header "
                      "says {:016x}); make the file again from its text",
                      path, kTokenHeaderBytes, checksum, header.token_checksum);
  }
  if (out_of_range_at != ~std::uint64_t{0}) {
    return make_error(ErrorCode::corrupt,
                      "{}: the token at offset {} lies outside the vocabulary of {}", path,
                      out_of_range_at, header.vocabulary);
  }
  return ok_status();
}

}  // namespace

struct TokenFile::Opened {
  std::string path;
  FileDescriptor file;
  TokenHeader header;

  std::int64_t offset_of(std::int64_t index) const {
    return kTokenHeaderBytes + index * header.bytes_per_token;
  }
  Status decode(std::int64_t first, std::span<const std::byte> bytes,
                std::span<std::int32_t> tokens) const;
};

// One that lies outside the vocabulary now would be looked up outside of a table.
Status TokenFile::Opened::decode(std::int64_t first, std::span<const std::byte> bytes,
                                 std::span<std::int32_t> tokens) const {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::uint16_t token = 0;
    std::memcpy(&token, &bytes[i * header.bytes_per_token], header.bytes_per_token);
    if (token >= header.vocabulary) {
      return make_error(
          ErrorCode::corrupt,
          "{}: the token at offset {} lies outside the vocabulary of {}: the file was "
          "changed while it was in use",
          path, offset_of(first + static_cast<std::int64_t>(i)), header.vocabulary);
    }
    tokens[i] = token;
  }
  return ok_status();
}

Result<TokenFile> TokenFile::open(const std::string& path) {
  ASSIGN_OR_RETURN(FileDescriptor file, open_for_reading(path));
  ASSIGN_OR_RETURN(const std::int64_t file_bytes, size_of(file, path));
  if (file_bytes < kTokenHeaderBytes) {
    return make_error(ErrorCode::corrupt,
                      "{}: {} bytes is too short for a token file, whose header takes {}", path,
                      file_bytes, kTokenHeaderBytes);
  }
  TokenHeader header;
  RETURN_IF_ERROR(read_at(file, std::as_writable_bytes(std::span(&header, 1)), 0, path));
  RETURN_IF_ERROR(check_token_header(header, file_bytes, path));
  RETURN_IF_ERROR(check_tokens(file, header, path));
  // Windows are read in shuffled order: no readahead. Where it is not heard, it is only slower.
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM);
  return TokenFile(std::make_unique<Opened>(Opened{path, std::move(file), header}));
}

TokenFile::TokenFile(std::unique_ptr<Opened> opened) : opened_(std::move(opened)) {}
TokenFile::TokenFile(TokenFile&&) noexcept = default;
TokenFile& TokenFile::operator=(TokenFile&&) noexcept = default;
TokenFile::~TokenFile() = default;

std::int64_t TokenFile::token_count() const {
  return static_cast<std::int64_t>(opened_->header.token_count);
}
std::int64_t TokenFile::vocabulary() const {
  return static_cast<std::int64_t>(opened_->header.vocabulary);
}
const std::string& TokenFile::path() const { return opened_->path; }

Status TokenFile::read(std::int64_t first, std::span<std::int32_t> tokens) const {
  CHECK_GE(first, 0);
  CHECK_LE(first + std::ssize(tokens), token_count());
  std::array<std::byte, kWindowPieceBytes> piece;
  const std::size_t most = piece.size() / opened_->header.bytes_per_token;
  while (!tokens.empty()) {
    const auto part = tokens.first(std::min(most, tokens.size()));
    const auto bytes = std::span(piece).first(part.size() * opened_->header.bytes_per_token);
    const std::int64_t offset = opened_->offset_of(first);
    ASSIGN_OR_RETURN(const std::size_t got, read_at(opened_->file, bytes, offset, path()));
    if (got < bytes.size()) {
      return make_error(ErrorCode::corrupt,
                        "{}: there is nothing from offset {} on, and tokens up to offset {} are "
                        "wanted: it was cut while it was in use",
                        path(), offset + static_cast<std::int64_t>(got),
                        offset + std::ssize(bytes));
    }
    RETURN_IF_ERROR(opened_->decode(first, bytes, part));
    first += std::ssize(part);
    tokens = tokens.subspan(part.size());
  }
  return ok_status();
}

}  // namespace sluice::data
