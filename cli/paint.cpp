#include "cli/paint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <random>

namespace sluice::cli {
namespace {

enum class When : std::uint8_t { automatic, always, never };
When when_asked = When::automatic;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// The colours that the terminal says it has.
ColourDepth stated_depth() {
  const std::string_view bits = variable("COLORTERM");
  if (bits == "truecolor" || bits == "24bit") return ColourDepth::of_24_bits;
  return variable("TERM").find("256color") != std::string_view::npos ? ColourDepth::of_256
                                                                     : ColourDepth::none;
}

const std::string& mark_begin() {
  static const std::string begin = [] {
    std::random_device device;
    return fmt::format("\x02{:08x}{:08x}", device(), device());
  }();
  return begin;
}
constexpr std::string_view kEnd = "-------";  // as long as "#4e79a7"

int channel(std::uint32_t colour, int index) {
  return static_cast<int>(colour >> (16 - 8 * index) & 0xff);
}

// The nearest of the 6x6x6 cube and the 24 greys that a terminal with 256 colours has.
int nearest_of_256(std::uint32_t colour) {
  constexpr std::array<int, 6> kLevels = {0, 95, 135, 175, 215, 255};
  int cube = 16;
  int cube_distance = 0;
  int sum = 0;
  for (int c = 0; c < 3; ++c) {
    const int value = channel(colour, c);
    const auto level = std::ranges::min_element(
        kLevels, {}, [value](int candidate) { return std::abs(candidate - value); });
    cube = cube + static_cast<int>(level - kLevels.begin()) * (c == 0 ? 36 : c == 1 ? 6 : 1);
    cube_distance += (*level - value) * (*level - value);
    sum += value;
  }
  const int step = std::clamp((sum / 3 - 3) / 10, 0, 23);
  int grey_distance = 0;
  for (int c = 0; c < 3; ++c) {
    const int off = channel(colour, c) - (8 + 10 * step);
    grey_distance += off * off;
  }
  return grey_distance < cube_distance ? 232 + step : cube;
}

}  // namespace

bool choose_colours(std::string_view when) {
  if (when != "auto" && when != "always" && when != "never") return false;
  when_asked = when == "auto" ? When::automatic : when == "always" ? When::always : When::never;
  return true;
}

ColourDepth colour_depth(std::FILE* stream) {
  if (when_asked == When::never) return ColourDepth::none;
  if (when_asked == When::always) return std::max(stated_depth(), ColourDepth::of_256);
  const bool is_wanted = variable("NO_COLOR").empty() && isatty(fileno(stream)) == 1;
  return is_wanted ? stated_depth() : ColourDepth::none;
}

std::string painted(std::string_view text, std::uint32_t colour) {
  return fmt::format("{0}{1}{2}{0}{3}", mark_begin(), colour_text(colour), text, kEnd);
}

std::string bar(double share, int columns, std::uint32_t colour) {
  const double length = std::clamp(share, 0.0, 1.0) * columns;
  if (colour_depth(stdout) == ColourDepth::none) {
    return fmt::format("{:<{}}", std::string(static_cast<std::size_t>(std::lround(length)), '#'),
                       columns);
  }
  constexpr std::array<std::string_view, 8> kEighths = {"",       "\u258f", "\u258e", "\u258d",
                                                        "\u258c", "\u258b", "\u258a", "\u2589"};
  const long eighths = std::lround(length * 8);
  std::string blocks;
  for (long i = 0; i < eighths / 8; ++i) blocks += "\u2588";
  blocks += kEighths[static_cast<std::size_t>(eighths % 8)];
  const long used = eighths / 8 + (eighths % 8 > 0 ? 1 : 0);
  return painted(blocks, colour) + std::string(static_cast<std::size_t>(columns - used), ' ');
}

std::optional<PaintMark> mark_at(std::string_view text) {
  const std::string& begin = mark_begin();
  if (!text.starts_with(begin)) return std::nullopt;
  const std::string_view what = text.substr(begin.size(), kEnd.size());
  return PaintMark{begin.size() + what.size(), parse_colour(what)};
}

std::size_t next_mark(std::string_view text) {
  return std::min(text.find(mark_begin()), text.size());
}

std::string escaped_but_marks(std::string_view text, LineFeeds line_feeds) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t plain = next_mark(text);
    escaped += escaped_for_terminal(text.substr(0, plain), line_feeds);
    text.remove_prefix(plain);
    const std::optional<PaintMark> mark = mark_at(text);
    if (!mark) continue;
    escaped += text.substr(0, mark->size_bytes);
    text.remove_prefix(mark->size_bytes);
  }
  return escaped;
}

std::string sequence_of(const PaintMark& mark, ColourDepth depth) {
  if (depth == ColourDepth::none) return "";
  if (!mark.colour) return "\x1b[39m";
  if (depth == ColourDepth::of_256) {
    return fmt::format("\x1b[38;5;{}m", nearest_of_256(*mark.colour));
  }
  return fmt::format("\x1b[38;2;{};{};{}m", channel(*mark.colour, 0), channel(*mark.colour, 1),
                     channel(*mark.colour, 2));
}

}  // namespace sluice::cli
