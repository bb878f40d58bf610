#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/escaped_text.h"

namespace sluice::cli {
namespace {

// The number of bytes of UTF-8 that begin a character.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

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
  const std::string text = escaped_for_terminal(paragraph);  // a name in it may not end a line
  std::string lines;
  std::string line;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    const std::size_t width = width_of(line) + 1 + width_of(word);
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

}  // namespace sluice::cli
