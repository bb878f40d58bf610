#include "core/runtime/outside.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace sluice::runtime {

Result<Waker> Waker::make(int wake_fd) {
  const int own = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) {
    return make_error(ErrorCode::internal, "cannot duplicate a descriptor: {}",
                      std::strerror(errno));
  }
  return Waker(std::make_shared<const Fd>(own));
}

Waker::Fd::~Fd() { close(fd); }

void Waker::wake() const {
  const std::uint64_t one = 1;
  // A full counter wakes as well.
  static_cast<void>(write(fd_->fd, &one, sizeof one) == sizeof one);
}

}  // namespace sluice::runtime
