#pragma once
// A Unix-domain address of any length: sockaddr_un has room for 107 bytes of a path, and run
// databases lie deeper than that. The folder is opened and named by its descriptor.
//
// Thread contract: free functions and plain owners.

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "base/status.h"

namespace sluice::control {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// Valid while `folder` is open.
struct SocketAddress {
  Descriptor folder;
  sockaddr_un address{};
  socklen_t size_bytes = 0;
};
Result<SocketAddress> socket_address(const std::string& path);

}  // namespace sluice::control
