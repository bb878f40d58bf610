#include "core/data/text_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/fnv.h"
#include "core/data/token_header.h"
#include "core/data/whole_file.h"

namespace sluice::data {
namespace {

// The text of sample_models/runs, which a script makes.
constexpr const char* kSampleText = "kjv.txt";

Result<TextFacts> facts_of(const FileDescriptor& file, const std::string& path,
                           std::optional<std::int64_t> most_bytes, const Stops& stops) {
  TextFacts facts{.checksum = kFnvOffset};
  const auto look = [&](std::span<const std::byte> bytes) {
    if (most_bytes) {
      const auto left = static_cast<std::size_t>(*most_bytes - facts.size_bytes);
      bytes = bytes.first(std::min(bytes.size(), left));
    }
    facts.size_bytes += static_cast<std::int64_t>(bytes.size());
    facts.checksum = fnv1a(bytes, facts.checksum);
  };
  RETURN_IF_ERROR(for_each_piece(file, 0, path, look, stops));
  return facts;
}

Status check_is_text(const FileDescriptor& file, const std::string& path) {
  ASSIGN_OR_RETURN(const std::int64_t size_bytes, size_of(file, path));  // no folders and pipes
  if (size_bytes == 0) {
    return make_error(ErrorCode::config, "{}: the text is empty; there is nothing to learn from it",
                      path);
  }
  std::array<char, kTokenMagic.size()> head{};
  RETURN_IF_ERROR(read_at(file, std::as_writable_bytes(std::span(head)), 0, path));
  if (head != kTokenMagic) return ok_status();
  return make_error(ErrorCode::config,
                    "{}: is a token file (it begins with SLCTOKEN), whose bytes are no text: leave "
                    "text_format out, or name the text that it was made from",
                    path);
}

}  // namespace

Result<TextFacts> look_at_text(const std::string& path, const Stops& stops) {
  ASSIGN_OR_RETURN(const FileDescriptor file, open_for_reading(path));
  RETURN_IF_ERROR(check_is_text(file, path));
  return facts_of(file, path, std::nullopt, stops);
}

Result<TextFacts> look_at_begin(const std::string& path, std::int64_t size_bytes) {
  ASSIGN_OR_RETURN(const FileDescriptor file, open_for_reading(path));
  return facts_of(file, path, size_bytes, {});
}

std::string how_to_get_text(const std::string& path) {
  if (std::filesystem::path(path).filename() != kSampleText) return "";
  return fmt::format("sample_models/data/prepare_kjv.sh {} makes it", path);
}

}  // namespace sluice::data
