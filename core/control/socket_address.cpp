#include "core/control/socket_address.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <utility>

namespace sluice::control {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Descriptor::release() { return std::exchange(fd_, -1); }

void Descriptor::reset() {
  if (fd_ >= 0) close(release());
}

Result<SocketAddress> socket_address(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string folder = whole.has_parent_path() ? whole.parent_path().string() : ".";
  SocketAddress result;
  result.folder = Descriptor(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!result.folder.is_open()) {
    return make_error(ErrorCode::not_found, "{}: {}", folder, strerror(errno));
  }
  const std::string name =
      fmt::format("/proc/self/fd/{}/{}", result.folder.get(), whole.filename().string());
  if (name.size() >= sizeof result.address.sun_path) {
    return make_error(ErrorCode::config, "{}: the file name is too long for a socket", path);
  }
  result.address.sun_family = AF_UNIX;
  name.copy(result.address.sun_path, name.size());
  result.size_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  return result;
}

}  // namespace sluice::control
