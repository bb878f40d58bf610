#include "cli/output.h"

#include <cstdio>

namespace sluice::cli {

void print_lines(std::string_view text) {
  const std::string escaped = escaped_for_terminal(text, LineFeeds::keep);
  std::fwrite(escaped.data(), 1, escaped.size(), stdout);
}

}  // namespace sluice::cli
