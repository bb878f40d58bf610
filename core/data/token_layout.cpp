#include "core/data/token_layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/data/token_header.h"
#include "core/data/whole_file.h"

namespace sluice::data {
namespace {

namespace fs = std::filesystem;

// llm.c's header: 256 numbers of which three are used.
constexpr std::int64_t kLlmcHeaderBytes = 1024;
struct LlmcHeader {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  std::int32_t token_count = 0;
};
static_assert(sizeof(LlmcHeader) == 12);

struct LlmcKind {
  std::uint32_t magic;
  std::uint32_t version;
  std::int64_t bytes_per_token;
};
constexpr std::array kLlmcKinds = {LlmcKind{20240520, 1, 2}, LlmcKind{20240801, 7, 4}};
constexpr std::uint32_t kLlmcEvaluation = 20240522;

const LlmcKind* llmc_kind(std::uint32_t magic) {
  const auto kind = std::ranges::find(kLlmcKinds, magic, &LlmcKind::magic);
  return kind == kLlmcKinds.end() ? nullptr : kind;
}

std::int64_t vocabulary_of(std::int64_t bytes_per_token) {
  return bytes_per_token == 2 ? std::int64_t{1} << 16 : kMostVocabulary;
}

bool begins_with(const std::string& path, std::string_view magic) {
  const Result<FileDescriptor> file = open_for_reading(path);
  std::array<char, 8> head{};
  if (!file.ok() || !read_at(*file, std::as_writable_bytes(std::span(head)), 0, path).ok()) {
    return false;
  }
  return std::string_view(head.data(), head.size()).starts_with(magic);
}

// Files called ".bin" that hold something else: their bytes would be learnt as if they were tokens.
Status check_headerless(const std::string& path) {
  const std::string index = fs::path(path).replace_extension(".idx").string();
  if (begins_with(index, "MMIDIDX")) {
    return make_error(ErrorCode::config,
                      "{}: holds tokens of Megatron, as {} beside it says, and these are not read; "
                      "make the tokens again (docs/tokens.md)",
                      path, index);
  }
  if (begins_with(path, std::string_view("PK\3\4", 4))) {
    return make_error(ErrorCode::config,
                      "{}: is a zip archive (the 4 bytes at offset 0), as PyTorch writes weights, "
                      "and no tokens",
                      path);
  }
  return ok_status();
}

Result<std::int64_t> size_with_header(const FileDescriptor& file, const std::string& path,
                                      std::int64_t header_bytes) {
  ASSIGN_OR_RETURN(const std::int64_t file_bytes, size_of(file, path));
  if (file_bytes >= header_bytes) return file_bytes;
  return make_error(ErrorCode::corrupt,
                    "{}: {} bytes is too short for a token file, whose header takes {}", path,
                    file_bytes, header_bytes);
}

Result<TokenLayout> sluice_layout(const FileDescriptor& file, const std::string& path) {
  ASSIGN_OR_RETURN(const std::int64_t file_bytes, size_with_header(file, path, kTokenHeaderBytes));
  TokenHeader header;
  RETURN_IF_ERROR(read_at(file, std::as_writable_bytes(std::span(&header, 1)), 0, path));
  RETURN_IF_ERROR(check_token_header(header, file_bytes, path));
  return TokenLayout{.format = TokenFormat::sluice,
                     .first_offset = kTokenHeaderBytes,
                     .bytes_per_token = header.bytes_per_token,
                     .token_count = static_cast<std::int64_t>(header.token_count),
                     .vocabulary = header.vocabulary,
                     .checksum = header.token_checksum,
                     .has_marks = header.has_marks(),
                     .window_tokens = header.window_tokens,
                     .has_labels = header.has_labels()};
}

Result<TokenLayout> llmc_layout(const FileDescriptor& file, const std::string& path) {
  ASSIGN_OR_RETURN(const std::int64_t file_bytes, size_with_header(file, path, kLlmcHeaderBytes));
  LlmcHeader header;
  RETURN_IF_ERROR(read_at(file, std::as_writable_bytes(std::span(&header, 1)), 0, path));
  const LlmcKind* kind = llmc_kind(header.magic);
  if (kind == nullptr) {
    return make_error(ErrorCode::corrupt,
                      "{}: no tokens of llm.c (the number at offset 0 is {}, not {} or {})", path,
                      header.magic, kLlmcKinds[0].magic, kLlmcKinds[1].magic);
  }
  if (header.version != kind->version) {
    return make_error(ErrorCode::unsupported,
                      "{}: version {} at offset 4 with the magic {}; this program reads version {} "
                      "of it",
                      path, header.version, header.magic, kind->version);
  }
  const std::int64_t payload = file_bytes - kLlmcHeaderBytes;
  if (header.token_count < 0 || header.token_count * kind->bytes_per_token != payload) {
    return make_error(ErrorCode::corrupt,
                      "{}: {} tokens of {} bytes are announced at offset 8, but {} bytes follow "
                      "the header: the file is cut or has grown; make it again",
                      path, header.token_count, kind->bytes_per_token, payload);
  }
  return TokenLayout{.format = TokenFormat::llm_c,
                     .first_offset = kLlmcHeaderBytes,
                     .bytes_per_token = kind->bytes_per_token,
                     .token_count = header.token_count,
                     .vocabulary = vocabulary_of(kind->bytes_per_token)};
}

Result<TokenLayout> nanogpt_layout(const FileDescriptor& file, const std::string& path) {
  RETURN_IF_ERROR(check_headerless(path));
  ASSIGN_OR_RETURN(const std::int64_t file_bytes, size_of(file, path));
  if (file_bytes % 2 != 0) {
    return make_error(ErrorCode::corrupt,
                      "{}: {} bytes are no tokens of nanoGPT, which take 2 each: the file is cut, "
                      "or is something else; for its bytes as tokens set text_format = \"bytes\"",
                      path, file_bytes);
  }
  return TokenLayout{.format = TokenFormat::nanogpt,
                     .bytes_per_token = 2,
                     .token_count = file_bytes / 2,
                     .vocabulary = vocabulary_of(2)};
}

}  // namespace

std::string name_of(TokenFormat format) {
  switch (format) {
    case TokenFormat::sluice:
      return "sluice";
    case TokenFormat::llm_c:
      return "llm.c";
    case TokenFormat::nanogpt:
      return "nanoGPT";
  }
  return "";
}

Result<std::optional<TokenFormat>> recognised_format(const std::string& path) {
  ASSIGN_OR_RETURN(const FileDescriptor file, open_for_reading(path));
  std::array<char, kTokenMagic.size()> head{};
  RETURN_IF_ERROR(read_at(file, std::as_writable_bytes(std::span(head)), 0, path));
  if (head == kTokenMagic) return std::optional(TokenFormat::sluice);
  std::uint32_t magic = 0;
  std::memcpy(&magic, head.data(), sizeof magic);
  if (llmc_kind(magic) != nullptr) return std::optional(TokenFormat::llm_c);
  if (magic == kLlmcEvaluation) {
    return make_error(ErrorCode::config,
                      "{}: is an evaluation file of llm.c (the number at offset 0 is {}): "
                      "questions with answers, and no text to learn",
                      path, magic);
  }
  if (fs::path(path).extension() != ".bin") return std::optional<TokenFormat>();
  RETURN_IF_ERROR(check_headerless(path));
  return std::optional(TokenFormat::nanogpt);
}

Result<TokenLayout> token_layout(const FileDescriptor& file, const std::string& path,
                                 TokenFormat format) {
  switch (format) {
    case TokenFormat::sluice:
      return sluice_layout(file, path);
    case TokenFormat::llm_c:
      return llmc_layout(file, path);
    case TokenFormat::nanogpt:
      break;
  }
  return nanogpt_layout(file, path);
}

}  // namespace sluice::data
