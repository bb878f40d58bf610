#include "core/data/token_vocabulary.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/fnv.h"
#include "core/data/whole_file.h"

namespace sluice::data {
namespace {

constexpr std::array<char, 8> kVocabularyMagic = {'S', 'L', 'C', 'V', 'O', 'C', 'A', 'B'};
constexpr std::uint32_t kVocabularyVersion = 1;
// The largest vocabularies of today have some 260 thousand tokens and 3 MB of bytes.
constexpr std::uint32_t kMostEntries = 1 << 22;
constexpr std::int64_t kMostTextBytes = std::int64_t{64} << 20;

// As it lies: little-endian, no padding; then a length for each token, and the bytes of all.
struct VocabularyHeader {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t token_count = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t checksum = 0;  // FNV-1a of all that follows
};
static_assert(sizeof(VocabularyHeader) == 32);

Error no_vocabulary(const std::string& path, const std::string& why) {
  return make_error(ErrorCode::corrupt,
                    "{}: {}; make it again (docs/tokens.md), or remove it to go on without the "
                    "text that the model writes",
                    path, why);
}

Status check_vocabulary_header(const VocabularyHeader& header, std::size_t file_bytes,
                               const std::string& path) {
  if (header.magic != kVocabularyMagic) {
    return no_vocabulary(path, "is no vocabulary (the 8 bytes at offset 0 are not SLCVOCAB)");
  }
  if (header.version != kVocabularyVersion) {
    return make_error(ErrorCode::unsupported,
                      "{}: vocabulary format version {} at offset 8, this program reads version {}",
                      path, header.version, kVocabularyVersion);
  }
  const std::uint64_t announced =
      sizeof(VocabularyHeader) + std::uint64_t{header.token_count} * 4 + header.text_bytes;
  if (header.token_count > kMostEntries || header.text_bytes > std::uint64_t{kMostTextBytes} ||
      announced != file_bytes) {
    return no_vocabulary(path, fmt::format("{} tokens (offset 12) with {} bytes of text (offset "
                                           "16) are announced, and the file has {} bytes",
                                           header.token_count, header.text_bytes, file_bytes));
  }
  return ok_status();
}

}  // namespace

TokenVocabulary::TokenVocabulary(std::string path, std::vector<std::uint32_t> ends,
                                 std::string bytes)
    : path_(std::move(path)), ends_(std::move(ends)), bytes_(std::move(bytes)) {}

std::string TokenVocabulary::path_beside(const std::string& token_path) {
  return std::filesystem::path(token_path).replace_extension(".vocab").string();
}

Result<std::optional<TokenVocabulary>> TokenVocabulary::load_beside(const std::string& token_path) {
  const std::string path = path_beside(token_path);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<TokenVocabulary>();
  ASSIGN_OR_RETURN(const FileDescriptor file, open_for_reading(path));
  ASSIGN_OR_RETURN(const std::int64_t file_bytes, size_of(file, path));
  if (file_bytes > kMostTextBytes + std::int64_t{kMostEntries} * 4) {
    return no_vocabulary(path, fmt::format("{} bytes are too many for a vocabulary", file_bytes));
  }
  std::string bytes(static_cast<std::size_t>(file_bytes), '\0');
  ASSIGN_OR_RETURN(const std::size_t got,
                   read_at(file, std::as_writable_bytes(std::span(bytes)), 0, path));
  bytes.resize(got);
  ASSIGN_OR_RETURN(TokenVocabulary vocabulary, parse(bytes, path));
  return std::optional(std::move(vocabulary));
}

Result<TokenVocabulary> TokenVocabulary::parse(std::string_view bytes, const std::string& path) {
  VocabularyHeader header;
  if (bytes.size() < sizeof header) {
    return no_vocabulary(path, fmt::format("{} bytes are too few for a vocabulary", bytes.size()));
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  RETURN_IF_ERROR(check_vocabulary_header(header, bytes.size(), path));
  bytes.remove_prefix(sizeof header);
  if (fnv1a(bytes) != header.checksum) {
    return no_vocabulary(path, "what follows the header is damaged (checksum at offset 24)");
  }
  std::vector<std::uint32_t> ends(header.token_count);
  std::memcpy(ends.data(), bytes.data(), ends.size() * 4);
  std::uint64_t end = 0;
  for (std::size_t token = 0; token < ends.size(); ++token) {
    end += ends[token];
    if (end > header.text_bytes) {
      return no_vocabulary(path, fmt::format("token {} ends behind the file's end", token));
    }
    ends[token] = static_cast<std::uint32_t>(end);
  }
  if (end != header.text_bytes) {
    return no_vocabulary(
        path, fmt::format("its tokens have {} bytes, and {} are there", end, header.text_bytes));
  }
  return TokenVocabulary(path, std::move(ends), std::string(bytes.substr(header.token_count * 4)));
}

std::string_view TokenVocabulary::text_of(std::int32_t token) const {
  CHECK_GE(token, 0);
  CHECK_LT(token, token_count());
  const auto index = static_cast<std::size_t>(token);
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(bytes_).substr(begin, ends_[index] - begin);
}

// A prompt is short: every token is tried at every place of it.
Result<std::vector<std::int32_t>> TokenVocabulary::tokens_of(std::string_view text,
                                                             std::int64_t vocabulary) const {
  std::vector<std::int32_t> tokens;
  const auto count = static_cast<std::int32_t>(std::min(token_count(), vocabulary));
  for (std::string_view rest = text; !rest.empty();) {
    std::int32_t best = 0;
    std::size_t best_bytes = 0;
    for (std::int32_t token = 0; token < count; ++token) {
      const std::string_view candidate = text_of(token);
      if (candidate.size() <= best_bytes || !rest.starts_with(candidate)) continue;
      best = token;
      best_bytes = candidate.size();
    }
    if (best_bytes == 0) {
      return make_error(ErrorCode::config,
                        "{}: no token stands for the byte {} of '{}'; set another sample_prompt, "
                        "or sample_tokens = 0",
                        path_, text.size() - rest.size(), text);
    }
    tokens.push_back(best);
    rest.remove_prefix(best_bytes);
  }
  return tokens;
}

}  // namespace sluice::data
