#pragma once
// Which registered buffer a piece of memory lies in. The kernel takes at most 1 GiB a buffer, so
// that a larger one is registered in pieces.
// Thread contract: filled once, then read by one thread.

#include <sys/uio.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace sluice::io::detail {

class RegisteredBuffers {
 public:
  RegisteredBuffers() = default;
  // The buffers must not overlap.
  explicit RegisteredBuffers(std::span<const std::span<std::byte>> buffers);

  // As the kernel is told; the position is the kernel's index.
  std::span<const iovec> pieces() const { return pieces_; }

  // The piece that holds all of [data, data + size_bytes).
  std::optional<int> find(const std::byte* data, std::size_t size_bytes) const;

 private:
  std::vector<iovec> pieces_;  // by address
};

}  // namespace sluice::io::detail
