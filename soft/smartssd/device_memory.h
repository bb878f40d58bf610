#pragma once
// The DDR of one software SmartSSD: one bank, an anonymous file that is mapped here once for the
// compute units and by page ranges for P2P buffers, so that both see the same bytes.
//
// A buffer takes whole pages of the budget and is followed by a page that belongs to nobody, which
// is_overrun() looks at. Its bytes are kPoison until somebody writes them. Address 0 is in no
// buffer.
//
// Thread contract: any thread; what is in a buffer is for its users to order.
// Errors: memory when budget or bank are full; io if the kernel refuses the file.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::soft_smartssd {

inline constexpr std::byte kPoison{0xd5};

class DeviceMemory {
 public:
  static Result<std::shared_ptr<DeviceMemory>> create(std::uint64_t budget_bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Lowest place that fits. The address is that of the first byte.
  Result<std::uint64_t> allocate(std::uint64_t size_bytes);
  // `address`: where a live buffer begins. Its bytes are gone and its memory goes back to the
  // machine.
  void release(std::uint64_t address);

  // Bytes from `address` to its buffer's end; 0 if it is in none.
  std::uint64_t room_at(std::uint64_t address) const;
  // In this process; of addresses with room.
  std::byte* at(std::uint64_t address) const { return bank_ + address; }
  // Whether somebody wrote behind the buffer in which `address` is; puts the page behind it right.
  bool is_overrun(std::uint64_t address);

  int fd() const { return fd_; }
  std::uint64_t budget_bytes() const { return budget_bytes_; }
  std::uint64_t used_bytes() const;

 private:
  DeviceMemory(int fd, std::byte* bank, std::uint64_t budget_bytes)
      : fd_(fd), bank_(bank), budget_bytes_(budget_bytes) {}

  std::uint64_t first_fit(std::uint64_t pages_bytes) const REQUIRES(mutex_);

  const int fd_;
  std::byte* const bank_;
  const std::uint64_t budget_bytes_;
  mutable Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> sizes_ GUARDED_BY(mutex_);  // address -> bytes
  std::uint64_t used_bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::soft_smartssd
