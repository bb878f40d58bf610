#pragma once
// Memory fit for O_DIRECT: page-aligned, a whole number of pages, zeroed. What a transfer needs is
// its type, so the wrong memory does not compile.
//
// Thread contract: a plain owner; moved between threads, used by one at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "base/status.h"

namespace sluice::io {

class PageAlignedBuffer {
 public:
  // `size_bytes` is rounded up to whole pages. Fails with ErrorCode::memory, never throws.
  static Result<PageAlignedBuffer> allocate(std::int64_t size_bytes);
  // Memory of somebody else's making that is as above; `release` gives it back.
  static PageAlignedBuffer adopt(std::span<std::byte> bytes, std::function<void()> release);

  PageAlignedBuffer() = default;
  PageAlignedBuffer(PageAlignedBuffer&&) noexcept = default;
  PageAlignedBuffer& operator=(PageAlignedBuffer&&) noexcept = default;

  // A buffer that was moved from, or never allocated, is empty.
  std::span<std::byte> bytes() { return {data_.get(), mapped_bytes()}; }
  std::span<const std::byte> bytes() const { return {data_.get(), mapped_bytes()}; }
  std::int64_t size_bytes() const { return static_cast<std::int64_t>(mapped_bytes()); }

 private:
  struct GiveBack {
    std::size_t size_bytes;
    std::function<void()> release;  // empty: to the kernel
    void operator()(std::byte* data) const;
  };
  std::size_t mapped_bytes() const { return data_ ? data_.get_deleter().size_bytes : 0; }

  std::unique_ptr<std::byte[], GiveBack> data_;
};

// Memory that an accelerator copies from and to by itself, so that nobody waits for the copy. What
// is copied is of this type; where nothing is, since the host computes, it is plain memory.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(PageAlignedBuffer memory) : memory_(std::move(memory)) {}

  std::span<std::byte> bytes() { return memory_.bytes(); }
  std::int64_t size_bytes() const { return memory_.size_bytes(); }

 private:
  PageAlignedBuffer memory_;
};

// Whoever has such memory. The default is plain memory.
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
  virtual Result<PinnedBuffer> allocate(std::int64_t size_bytes);
};

}  // namespace sluice::io
