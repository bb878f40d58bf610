#include "profiler/collect/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

namespace sluice::collect {

ProcessMemory::ProcessMemory() : descriptor_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

ProcessMemory::~ProcessMemory() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::int64_t ProcessMemory::resident_bytes() const {
  if (descriptor_ < 0) return -1;
  char text[128];
  const ssize_t length = ::pread(descriptor_, text, sizeof text, 0);
  if (length <= 0) return -1;
  // "SIZE RESIDENT ...", in pages.
  const char* end = text + length;
  const auto* space =
      static_cast<const char*>(std::memchr(text, ' ', static_cast<std::size_t>(length)));
  if (space == nullptr) return -1;
  std::int64_t pages = 0;
  if (std::from_chars(space + 1, end, pages).ec != std::errc()) return -1;
  return pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace sluice::collect
