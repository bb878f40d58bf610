#include "storage/state/detail/state_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/safe_file.h"
#include "storage/state/detail/disk.h"
#include "storage/state/detail/file_names.h"

namespace sluice::state::detail {
namespace {

// The text that the holder wrote; empty if it has not come to that yet.
std::string holder(int fd) {
  std::array<char, 32> text{};
  const ssize_t length = pread(fd, text.data(), text.size(), 0);
  std::string_view pid(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  pid = pid.substr(0, pid.find('\n'));
  return std::string(pid);
}

Status write_holder(int fd, const std::string& path) {
  const std::string text = fmt::format("{}\n", getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text.data(), text.size(), 0) < 0)
    return system_error(path, "write the process id", errno);
  return ok_status();
}

}  // namespace

Result<StateLock> StateLock::take(const std::string& directory) {
  const std::string path = lock_path(directory);
  const auto failed = [&](int error_number) {
    return system_error(path, "open the lock file for writing", error_number);
  };
  ASSIGN_OR_RETURN(const int fd, open_regular_file(path, O_RDWR | O_CREAT, FileTrust::own, failed));
  StateLock lock(fd);
  int failure = 0;
  do {
    failure = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  } while (failure == EINTR);
  if (failure == EWOULDBLOCK) {
    const std::string pid = holder(fd);
    return make_error(ErrorCode::busy,
                      "{}: {} has this optimizer state open; wait until it has ended, or choose "
                      "another state_dir",
                      directory, pid.empty() ? "another run" : "the run of process " + pid);
  }
  if (failure != 0) return system_error(path, "lock it (flock)", failure);
  RETURN_IF_ERROR(write_holder(fd, path));
  return lock;
}

StateLock::StateLock(StateLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

StateLock& StateLock::operator=(StateLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

StateLock::~StateLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace sluice::state::detail
