#include "storage/io/page_aligned_buffer.h"

#include <sys/mman.h>

#include "base/check.h"
#include "base/units.h"

namespace sluice::io {

// Anonymous memory is page-aligned and zeroed by contract of the kernel, and goes back to it whole.
Result<PageAlignedBuffer> PageAlignedBuffer::allocate(std::int64_t size_bytes) {
  CHECK_GE(size_bytes, 0);
  PageAlignedBuffer buffer;
  if (size_bytes == 0) return buffer;
  const auto mapped_bytes = static_cast<std::size_t>(round_up(size_bytes, kPageBytes));
  void* data =
      mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return make_error(ErrorCode::memory,
                      "no memory for a transfer buffer of {}; lower `buffers` or "
                      "`subgroup_elements`",
                      format_bytes(size_bytes));
  }
  buffer.data_ = {static_cast<std::byte*>(data), Unmap{mapped_bytes}};
  return buffer;
}

void PageAlignedBuffer::Unmap::operator()(std::byte* data) const {
  CHECK_EQ(munmap(data, size_bytes), 0);
}

}  // namespace sluice::io
