#include "storage/io/page_aligned_buffer.h"

#include <sys/mman.h>

#include "base/check.h"
#include "base/process_limits.h"
#include "base/units.h"

namespace sluice::io {

namespace {

constexpr std::size_t kHugePageBytes = 2 << 20;

void* map(std::size_t size_bytes) {
  return mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// On a huge page, where the kernel may use them: memory that is contiguous to a drive too takes one
// segment of its request queue where scattered pages take hundreds, so that a request of 1 MiB is
// not split.
void* map_huge(std::size_t size_bytes) {
  void* mapped = map(size_bytes + kHugePageBytes);
  if (mapped == MAP_FAILED) return MAP_FAILED;
  auto* data = static_cast<std::byte*>(mapped);
  const std::size_t in_huge_page = reinterpret_cast<std::uintptr_t>(mapped) % kHugePageBytes;
  const std::size_t before_bytes = (kHugePageBytes - in_huge_page) % kHugePageBytes;
  const std::size_t after_bytes = kHugePageBytes - before_bytes;
  if (before_bytes > 0) CHECK_EQ(munmap(data, before_bytes), 0);
  CHECK_EQ(munmap(data + before_bytes + size_bytes, after_bytes), 0);
  // Advice: a kernel without huge pages refuses it, and nothing is lost.
  static_cast<void>(madvise(data + before_bytes, size_bytes, MADV_HUGEPAGE));
  return data + before_bytes;
}

}  // namespace

// Anonymous memory is page-aligned and zeroed by contract of the kernel, and goes back to it whole.
Result<PageAlignedBuffer> PageAlignedBuffer::allocate(std::int64_t size_bytes) {
  CHECK_GE(size_bytes, 0);
  PageAlignedBuffer buffer;
  if (size_bytes == 0) return buffer;
  const auto mapped_bytes = static_cast<std::size_t>(round_up(size_bytes, kPageBytes));
  void* data = mapped_bytes < kHugePageBytes ? map(mapped_bytes) : map_huge(mapped_bytes);
  if (data == MAP_FAILED) {
    return make_error(ErrorCode::memory,
                      "no memory for a transfer buffer of {}: this process may have {}; lower "
                      "`buffers` or `subgroup_elements`",
                      format_bytes(size_bytes), memory_limit_text());
  }
  buffer.data_ = {static_cast<std::byte*>(data), GiveBack{mapped_bytes, {}}};
  return buffer;
}

PageAlignedBuffer PageAlignedBuffer::adopt(std::span<std::byte> bytes,
                                           std::function<void()> release) {
  CHECK_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % kPageBytes, 0U);
  CHECK_EQ(static_cast<std::int64_t>(bytes.size()) % kPageBytes, 0);
  PageAlignedBuffer buffer;
  buffer.data_ = {bytes.data(), GiveBack{bytes.size(), std::move(release)}};
  return buffer;
}

void PageAlignedBuffer::GiveBack::operator()(std::byte* data) const {
  if (release) {
    release();
  } else {
    CHECK_EQ(munmap(data, size_bytes), 0);
  }
}

Result<PinnedBuffer> PinnedMemory::allocate(std::int64_t size_bytes) {
  ASSIGN_OR_RETURN(PageAlignedBuffer memory, PageAlignedBuffer::allocate(size_bytes));
  return PinnedBuffer(std::move(memory));
}

}  // namespace sluice::io
