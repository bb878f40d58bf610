#pragma once
// What a run says beside its results.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace sluice {

// What is written to stderr while it lives.
class StderrText {
 public:
  StderrText() : file_(std::tmpfile()), kept_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    dup2(fileno(file_), STDERR_FILENO);
  }
  ~StderrText() {
    std::fflush(stderr);
    dup2(kept_, STDERR_FILENO);
    ::close(kept_);
    std::fclose(file_);
  }
  std::string so_far() const {
    std::fflush(stderr);
    std::string text(4096, '\0');
    const ssize_t size = pread(fileno(file_), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, size)));
    return text;
  }

 private:
  std::FILE* file_;
  int kept_;
};

}  // namespace sluice
