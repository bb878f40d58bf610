#include "storage/io/detail/completion_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "storage/io/detail/error_text.h"

namespace sluice::io::detail {

Result<CompletionSignal> CompletionSignal::open() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return file_error("io engine", "make an eventfd", errno);
  return CompletionSignal(fd);
}

CompletionSignal::CompletionSignal(CompletionSignal&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

CompletionSignal::~CompletionSignal() {
  if (fd_ >= 0) ::close(fd_);
}

void CompletionSignal::raise(int fd) {
  // EAGAIN: the counter is full, and so the eventfd is readable already.
  while (eventfd_write(fd, 1) != 0) {
    if (errno == EAGAIN) return;
    CHECK_EQ(errno, EINTR);
  }
}

void CompletionSignal::clear() const {
  eventfd_t count = 0;
  while (eventfd_read(fd_, &count) != 0) {
    if (errno == EAGAIN) return;  // was clear
    CHECK_EQ(errno, EINTR);
  }
}

}  // namespace sluice::io::detail
