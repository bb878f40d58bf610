#pragma once
// A TOML table whose keys are asked for one by one, and whose errors (ErrorCode::config) start with
// "FILE:LINE: key". Hides the TOML library and its exceptions.
//
// Thread contract: immutable; a table keeps its document alive.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sluice::platform {

class TomlTable {
 public:
  // A platform file; one of another kind is refused as that.
  static Result<TomlTable> parse(std::string_view toml, const std::string& path);

  // An error for the first key that is none of these, with the one that was probably meant.
  Status allow_only(std::span<const std::string> keys) const;
  bool has(std::string_view key) const;

  // Each is an error when the key is missing or of another type.
  Result<std::string> text(std::string_view key) const;
  Result<std::int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;  // with or without a decimal point
  Result<std::vector<std::string>> texts(std::string_view key) const;
  Result<std::vector<std::vector<std::string>>> rows_of_texts(std::string_view key) const;
  Result<TomlTable> table(std::string_view key) const;
  Result<std::vector<TomlTable>> tables(std::string_view key) const;  // [[key]], at least one

  // A text that `parse_text` (of base/units.h) understands.
  template <typename Parse>
  auto quantity(std::string_view key, Parse parse_text) const
      -> decltype(parse_text(std::string_view())) {
    ASSIGN_OR_RETURN(const std::string written, text(key));
    auto parsed = parse_text(written);
    if (!parsed.ok()) return error(key, parsed.error().message());
    return parsed;
  }

  // "FILE:LINE: key: message", where LINE is that of the key, or of the table if it has no such
  // key.
  Error error(std::string_view key, std::string_view message) const;

 private:
  struct Document;
  TomlTable(std::shared_ptr<const Document> document, const void* table, std::string prefix)
      : document_(std::move(document)), table_(table), prefix_(std::move(prefix)) {}
  Error missing(std::string_view key) const;
  std::string full_name(std::string_view key) const;

  std::shared_ptr<const Document> document_;
  const void* table_;   // the library's table, inside document_
  std::string prefix_;  // "device.drive."
};

}  // namespace sluice::platform
