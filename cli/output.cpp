#include "cli/output.h"

#include <cstdio>

namespace sluice::cli {

void print_lines(std::string_view text, std::FILE* stream) {
  const std::string shown = terminal_text(text, colour_depth(stream));
  std::fwrite(shown.data(), 1, shown.size(), stream);
}

std::string terminal_text(std::string_view text, ColourDepth depth) {
  const std::string escaped = escaped_but_marks(text, LineFeeds::keep);
  text = escaped;
  std::string shown;
  while (!text.empty()) {
    const std::size_t plain = next_mark(text);
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (const std::optional<PaintMark> mark = mark_at(text)) {
      shown += sequence_of(*mark, depth);
      text.remove_prefix(mark->size_bytes);
    }
  }
  return shown;
}

}  // namespace sluice::cli
