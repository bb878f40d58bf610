#include <algorithm>
#include <charconv>

#include "core/model/model_shape.h"

namespace sluice::model {
namespace {

bool is_number_or_flag(const std::string& value) {
  if (value == "true" || value == "false") return true;
  double number = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == value.data() + value.size();
}

// TOML's basic string.
std::string quoted(const std::string& text) {
  std::string toml = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      toml += {'\\', letter};
    } else if (byte < 0x20 || byte == 0x7f) {
      toml += fmt::format("\\u{:04x}", byte);
    } else {
      toml += letter;
    }
  }
  return toml + "\"";
}

}  // namespace

std::string model_file_text(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text;
  for (const auto& [key, value] : values) {
    const bool is_plain = key != "name" && is_number_or_flag(value);
    if (is_plain && value == "0") continue;  // a key that was left out
    text += fmt::format("{} = {}\n", key, is_plain ? value : quoted(value));
  }
  return text;
}

}  // namespace sluice::model
