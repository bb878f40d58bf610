#pragma once
// The arguments of a tool: declared once, as data, from which both its JSON schema and the check of
// a call are made.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "profiler/answers/record_json.h"

namespace sluice::mcp {

using answers::Json;

inline constexpr std::size_t kTextBytesMax = 16 << 10;  // of an argument
inline constexpr std::size_t kTextsMax = 64;            // in a list

struct Parameter {
  enum class Type : std::uint8_t { text, integer, flag, texts };
  const char* name;
  Type type;
  const char* description;
  bool is_required = false;
  std::int64_t min = 0;  // of integers
  std::int64_t max = 0;
  std::vector<std::string> words = {};  // of texts: one of these; none: any
};

// {"type": "object", "properties": {...}, "required": [...], "additionalProperties": false}
Json schema_of(const std::vector<Parameter>& parameters);

// Checked ones. What was not given has no value.
class Arguments {
 public:
  // ErrorCode::config: what is wrong with them, in words; names the nearest name of a wrong one.
  static Result<Arguments> read(const Json& given, const std::vector<Parameter>& parameters);

  std::optional<std::string> text(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  bool flag(std::string_view name) const;  // false: not given
  std::vector<std::string> texts(std::string_view name) const;

 private:
  using Value = std::variant<std::string, std::int64_t, bool, std::vector<std::string>>;
  static Result<Value> value_of(const Json& given, const Parameter& parameter);

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace sluice::mcp
