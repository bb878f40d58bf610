#pragma once
// Memory fit for O_DIRECT: page-aligned, a whole number of pages, zeroed. What a transfer needs is
// its type, so the wrong memory does not compile.
//
// Thread contract: a plain owner; moved between threads, used by one at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"

namespace sluice::io {

class PageAlignedBuffer {
 public:
  // `size_bytes` is rounded up to whole pages. Fails with ErrorCode::memory, never throws.
  static Result<PageAlignedBuffer> allocate(std::int64_t size_bytes);

  PageAlignedBuffer() = default;
  PageAlignedBuffer(PageAlignedBuffer&&) noexcept = default;
  PageAlignedBuffer& operator=(PageAlignedBuffer&&) noexcept = default;

  // A buffer that was moved from, or never allocated, is empty.
  std::span<std::byte> bytes() { return {data_.get(), mapped_bytes()}; }
  std::span<const std::byte> bytes() const { return {data_.get(), mapped_bytes()}; }
  std::int64_t size_bytes() const { return static_cast<std::int64_t>(mapped_bytes()); }

 private:
  struct Unmap {
    std::size_t size_bytes;
    void operator()(std::byte* data) const;
  };
  std::size_t mapped_bytes() const { return data_ ? data_.get_deleter().size_bytes : 0; }

  std::unique_ptr<std::byte[], Unmap> data_;
};

}  // namespace sluice::io
