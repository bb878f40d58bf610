#include "cli/output.h"

#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/safe_file.h"
#include "cli/exit_code.h"

namespace sluice::cli {
namespace {

int output_error = 0;  // errno of the first line on stdout that could not be written
bool has_outlived_readers = false;
bool is_progress_alone = false;

void note_output(bool is_written) {
  if (!is_written && output_error == 0) output_error = errno;
}

}  // namespace

void print_lines(std::string_view text, std::FILE* stream) {
  const std::string shown = terminal_text(text, colour_depth(stream));
  const bool is_written = std::fwrite(shown.data(), 1, shown.size(), stream) == shown.size();
  if (stream == stdout) note_output(is_written);
}

void flush_lines() { note_output(std::fflush(stdout) == 0); }

void outlive_readers(Lines lines) {
  ::signal(SIGPIPE, SIG_IGN);
  has_outlived_readers = true;
  is_progress_alone = lines == Lines::progress;
}

int finish_output(int exit_code) {
  flush_lines();
  if (output_error == 0 && std::ferror(stdout) == 0) return exit_code;
  const bool has_reader = output_error != EPIPE && output_error != EBADF;  // EBADF: closed
  if (!has_reader && is_progress_alone) return exit_code;
  if (output_error != EPIPE || has_outlived_readers) {
    const std::string why = output_error == 0 ? ""
                                              : fmt::format(": {}{}", std::strerror(output_error),
                                                            file_limit_advice(output_error));
    std::fprintf(stderr, "sluice: error: what was to be printed could not be written%s\n",
                 why.c_str());
  }
  return exit_code == kDone ? kFailed : exit_code;
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
