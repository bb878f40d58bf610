#include "base/figure_text.h"

#include <fmt/format.h>

#include <iterator>

#include "base/units.h"

namespace sluice {

std::string format_whole(std::int64_t count) {
  std::string text = fmt::format("{}", count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;
  for (auto at = std::ssize(text) - 3; at > first; at -= 3) {
    text.insert(static_cast<std::size_t>(at), 1, ' ');
  }
  return text;
}

std::string size_text(std::int64_t bytes) {
  constexpr std::int64_t kKibi = std::int64_t{1} << 10;
  constexpr std::int64_t kMebi = std::int64_t{1} << 20;
  return bytes >= 64 * kMebi ? fmt::format("{}MiB", divide_up(bytes, kMebi))
                             : fmt::format("{}KiB", divide_up(bytes, kKibi));
}

}  // namespace sluice
