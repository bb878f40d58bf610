#include "core/data/token_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fnv.h"
#include "core/data/token_header.h"
#include "core/data/whole_file.h"

namespace sluice::data {
namespace {

// Reads all tokens once, without mapping them: pages of a mapping would count as this process's
// memory, and a token file may be larger than the memory a run is given.
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

struct TokenFile::Mapping {
  std::string path;
  TokenHeader header;
  void* address = MAP_FAILED;
  std::size_t size_bytes = 0;
  const std::uint8_t* tokens = nullptr;

  ~Mapping() {
    if (address != MAP_FAILED) ::munmap(address, size_bytes);
  }
};

Result<TokenFile> TokenFile::open(const std::string& path) {
  ASSIGN_OR_RETURN(const FileDescriptor file, open_for_reading(path));
  ASSIGN_OR_RETURN(const std::int64_t file_bytes, size_of(file, path));
  if (file_bytes < kTokenHeaderBytes) {
    return make_error(ErrorCode::corrupt,
                      "{}: {} bytes is too short for a token file, whose header takes {}", path,
                      file_bytes, kTokenHeaderBytes);
  }
  auto mapping = std::make_unique<Mapping>();
  mapping->path = path;
  mapping->size_bytes = static_cast<std::size_t>(file_bytes);
  mapping->address = ::mmap(nullptr, mapping->size_bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapping->address == MAP_FAILED) {
    return make_error(ErrorCode::io, "{}: mapping {} bytes failed: {}", path, file_bytes,
                      std::strerror(errno));
  }
  const auto* bytes = static_cast<const std::uint8_t*>(mapping->address);
  std::memcpy(&mapping->header, bytes, sizeof(TokenHeader));
  mapping->tokens = bytes + kTokenHeaderBytes;
  RETURN_IF_ERROR(check_token_header(mapping->header, file_bytes, path));
  RETURN_IF_ERROR(check_tokens(file, mapping->header, path));
  // Windows are read in shuffled order: no readahead.
  ::madvise(mapping->address, mapping->size_bytes, MADV_RANDOM);
  return TokenFile(std::move(mapping));
}

TokenFile::TokenFile(std::unique_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {}
TokenFile::TokenFile(TokenFile&&) noexcept = default;
TokenFile& TokenFile::operator=(TokenFile&&) noexcept = default;
TokenFile::~TokenFile() = default;

std::int64_t TokenFile::token_count() const {
  return static_cast<std::int64_t>(mapping_->header.token_count);
}
std::int64_t TokenFile::vocabulary() const {
  return static_cast<std::int64_t>(mapping_->header.vocabulary);
}
const std::string& TokenFile::path() const { return mapping_->path; }

std::int32_t TokenFile::token(std::int64_t index) const {
  CHECK_GE(index, 0);
  CHECK_LT(index, token_count());
  if (mapping_->header.bytes_per_token == 1) return mapping_->tokens[index];
  return mapping_->tokens[2 * index] | (mapping_->tokens[2 * index + 1] << 8);
}

}  // namespace sluice::data
