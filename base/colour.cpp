#include "base/colour.h"

#include <fmt/format.h>

#include <charconv>

namespace sluice {

std::string colour_text(std::uint32_t colour) { return fmt::format("#{:06x}", colour); }

std::optional<std::uint32_t> parse_colour(std::string_view text) {
  const bool is_colour =
      text.size() == 7 && text.front() == '#' &&
      text.substr(1).find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!is_colour) return std::nullopt;
  std::uint32_t colour = 0;
  std::from_chars(text.data() + 1, text.data() + text.size(), colour, 16);
  return colour;
}

}  // namespace sluice
