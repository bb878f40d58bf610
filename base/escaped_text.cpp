#include "base/escaped_text.h"

#include <cstddef>
#include <cstdint>

namespace sluice {
namespace {

struct Character {
  std::size_t size_bytes;  // 0: no UTF-8
  std::uint32_t code_point;
};

std::uint32_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// The first character of a text that is not empty.
Character first_character(std::string_view text) {
  constexpr Character kNone{0, 0};
  const std::uint32_t first = byte_at(text, 0);
  if (first < 0x80) return {1, first};
  // Bytes, bits of the first byte, and the least code point that needs N bytes: a smaller one
  // is an overlong form, which no writer may use.
  std::size_t size = 0;
  std::uint32_t code_point = 0;
  std::uint32_t least = 0;
  if ((first & 0xe0) == 0xc0) {
    size = 2, code_point = first & 0x1f, least = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    size = 3, code_point = first & 0x0f, least = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    size = 4, code_point = first & 0x07, least = 0x10000;
  }
  if (size == 0 || text.size() < size) return kNone;
  for (std::size_t at = 1; at < size; ++at) {
    const std::uint32_t next = byte_at(text, at);
    if ((next & 0xc0) != 0x80) return kNone;
    code_point = code_point << 6 | (next & 0x3f);
  }
  const bool is_surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < least || code_point > 0x10ffff || is_surrogate) return kNone;
  return {size, code_point};
}

bool is_printable(std::uint32_t code_point) {
  if (code_point < 0x20 || (code_point >= 0x7f && code_point <= 0x9f)) return false;
  if (code_point >= 0x2028 && code_point <= 0x202e) return false;  // line ends, direction
  if (code_point >= 0x2066 && code_point <= 0x2069) return false;  // direction
  return code_point != 0x200e && code_point != 0x200f && code_point != 0x061c;  // direction
}

// `mark` stands before the two digits of each byte that does not stay.
std::string escaped(std::string_view text, LineFeeds line_feeds, std::string_view mark) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const bool stays = (text.front() == '\n' && line_feeds == LineFeeds::keep) ||
                       (character.size_bytes > 0 && is_printable(character.code_point));
    // Text that is not UTF-8 goes a byte at a time: the next byte may begin a character.
    const std::size_t size = character.size_bytes > 0 ? character.size_bytes : 1;
    for (const char byte : text.substr(0, size)) {
      if (stays) {
        safe += byte;
      } else {
        const auto value = static_cast<unsigned char>(byte);
        safe += mark;
        safe += kDigits[value >> 4];
        safe += kDigits[value & 15];
      }
    }
    text.remove_prefix(size);
  }
  return safe;
}

}  // namespace

std::string escaped_for_terminal(std::string_view text, LineFeeds line_feeds) {
  return escaped(text, line_feeds, "\\x");
}

std::string escaped_in_json(std::string_view json) {
  return escaped(json, LineFeeds::keep, "\\\\x");
}

}  // namespace sluice
