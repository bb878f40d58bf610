#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "cli/paint.h"
#include "cli/program.h"

namespace sluice::cli {
namespace {

struct WideRange {
  std::uint32_t first;
  std::uint32_t last;
};
// Characters of two columns: East Asian Wide and Fullwidth of Unicode's EastAsianWidth.txt,
// in whole blocks, and pictures.
constexpr std::array kWide = std::to_array<WideRange>({{0x1100, 0x115f},
                                                       {0x2e80, 0x303e},
                                                       {0x3041, 0xa4cf},
                                                       {0xa960, 0xa97f},
                                                       {0xac00, 0xd7a3},
                                                       {0xf900, 0xfaff},
                                                       {0xfe30, 0xfe6f},
                                                       {0xff00, 0xff60},
                                                       {0xffe0, 0xffe6},
                                                       {0x1f300, 0x1faff},
                                                       {0x20000, 0x3fffd}});
// Combining marks stand over the letter before them.
constexpr std::array kNoWidth = std::to_array<WideRange>(
    {{0x0300, 0x036f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}});

bool is_in(std::span<const WideRange> ranges, std::uint32_t code_point) {
  return std::ranges::any_of(ranges, [code_point](const WideRange& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

std::size_t columns_of_character(std::uint32_t code_point) {
  if (is_in(kNoWidth, code_point)) return 0;
  return is_in(kWide, code_point) ? 2 : 1;
}

bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    if (const std::optional<PaintMark> mark = mark_at(text)) {
      text.remove_prefix(mark->size_bytes);
      continue;
    }
    const auto first = static_cast<unsigned char>(text.front());
    std::size_t size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    size = std::min(size, text.size());
    std::uint32_t code_point = size == 1 ? first : first & (0x7f >> size);
    for (std::size_t i = 1; i < size; ++i) {
      code_point = code_point << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
    }
    columns += columns_of_character(code_point);
    text.remove_prefix(size);
  }
  return columns;
}

std::string cut_to(std::string text, std::size_t columns_max, Kept kept) {
  if (columns_of(text) <= columns_max) return text;
  const std::string dots = "...";
  while (!text.empty() && columns_of(text) + dots.size() > columns_max) {
    std::size_t size = 1;
    if (kept == Kept::end) {
      while (size < text.size() && is_inside_character(text[size])) ++size;
      text.erase(0, size);
    } else {
      while (size < text.size() && is_inside_character(text[text.size() - size])) ++size;
      text.resize(text.size() - size);
    }
  }
  return kept == Kept::end ? dots + text : text + dots;
}

std::string padded(std::string_view text, int columns) {
  const auto width = static_cast<std::size_t>(columns);
  const std::size_t used = columns_of(text);
  return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

int terminal_columns() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max<int>(kColumnsMin, size.ws_col);
  return 80;
}

std::string in_column(const std::string& text, int columns, int begin) {
  const int width = std::max(kColumnsMin / 2, columns - begin);
  std::string lines;
  for (const char c : wrapped(text, width, "")) {
    lines += c;
    if (c == '\n') lines += std::string(static_cast<std::size_t>(begin), ' ');
  }
  lines.resize(lines.size() - static_cast<std::size_t>(begin));
  return lines;
}

std::string wrapped(const std::string& paragraph, int columns, const std::string& indent) {
  const std::string text =
      escaped_but_marks(paragraph, LineFeeds::escape);  // a name in it may not end a line
  std::string lines;
  std::string line;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t space = std::min(text.find(' ', at), text.size());
    // A number and its per cent stay together.
    if (text.compare(space, 2, " %") == 0) space = std::min(text.find(' ', space + 1), text.size());
    const std::string word = text.substr(at, space - at);
    const std::size_t width = columns_of(line) + 1 + columns_of(word);
    if (!line.empty() && width > static_cast<std::size_t>(columns)) {
      lines += line + "\n";
      line = indent;
    } else if (!line.empty()) {
      line += ' ';
    }
    line += word;
    at = space + 1;
  }
  return lines + line + "\n";
}

namespace {

// At the beginning of a line, or behind what it is for, as in "Look:   sluice show out/run.db".
bool begins_command(const std::string& line, const std::string& command) {
  const std::size_t at = line.find(command);
  if (at == std::string::npos) return false;
  const std::size_t before = at == 0 ? std::string::npos : line.find_last_not_of(' ', at - 1);
  return before == std::string::npos || line[before] == ':';
}

}  // namespace

// A line of a command has its breaks already (command_lines): more would cut it apart.
std::string fitted(const std::string& text, int columns) {
  const std::string command = program() + " ";
  std::string all;
  bool goes_on = false;  // the line before ends with a shell's sign that the command does
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const bool is_command = goes_on || line.ends_with(" \\") || begins_command(line, command);
    goes_on = line.ends_with(" \\");
    if (is_command || columns_of(line) <= static_cast<std::size_t>(columns)) {
      all += line + "\n";
    } else {
      const std::string spaces(indent, ' ');
      all +=
          spaces + wrapped(line.substr(indent), columns - static_cast<int>(indent), spaces + "  ");
    }
    at = end + 1;
  }
  return all;
}

std::string command_lines(const std::string& command, int columns, int begin) {
  const auto room = static_cast<std::size_t>(std::max(kColumnsMin / 2, columns - begin - 2));
  std::string lines;
  std::string line;
  std::size_t at = 0;
  while (at < command.size()) {
    // Breaks stand ahead of options: what belongs together stays on a line.
    const std::size_t next = std::min(command.find(" --", at + 1), command.size());
    const std::string part = command.substr(at, next - at);
    if (!line.empty() && columns_of(line) + columns_of(part) > room) {
      lines += line + " \\\n" + std::string(static_cast<std::size_t>(begin), ' ');
      line = part.substr(1);
    } else {
      line += part;
    }
    at = next;
  }
  return lines + line + "\n";
}

}  // namespace sluice::cli
