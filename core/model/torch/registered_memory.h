#pragma once
// Pinned memory of exactly the size that is asked for: the kernel's, registered with a device's
// runtime. libtorch's own allocator of pinned memory rounds each size up to a power of two
// (ATen/core/CachingHostAllocator.h), so that 249 MB of parameters take 268 MB, and 3.2 GB
// take 4.3.
//
// Thread contract: as io::PinnedMemory; a buffer is given back on any thread.

#include <cstddef>

#include "storage/io/page_aligned_buffer.h"

namespace sluice::model {

// The runtime's functions; 0 is success.
struct HostRegistration {
  int (*take)(void* address, std::size_t size_bytes, unsigned flags) = nullptr;
  int (*give_back)(void* address) = nullptr;
};

class RegisteredMemory final : public io::PinnedMemory {
 public:
  explicit RegisteredMemory(const HostRegistration& runtime) : runtime_(runtime) {}
  // ErrorCode::memory where there is none, or the runtime does not pin it.
  Result<io::PinnedBuffer> allocate(std::int64_t size_bytes) override;

 private:
  HostRegistration runtime_;
};

}  // namespace sluice::model
