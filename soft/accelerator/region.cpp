#include "soft/accelerator/region.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice::soft_accelerator {
namespace {

// Room for gaps between blocks, and for a cap that is raised later. It costs addresses only.
constexpr std::int64_t kLeastBytes = std::int64_t{64} << 30;
constexpr std::int64_t kRoomOfCap = 4;

char* mapped(int file, std::int64_t size, int protection) {
  void* const address = ::mmap(nullptr, static_cast<std::size_t>(size), protection,
                               MAP_SHARED | MAP_NORESERVE, file, 0);
  TORCH_CHECK(address != MAP_FAILED, "software accelerator: no ", size,
              " bytes of addresses: ", std::strerror(errno));
  ::madvise(address, static_cast<std::size_t>(size), MADV_DONTDUMP);
  return static_cast<char*>(address);
}

}  // namespace

Region::Region(std::int64_t cap_bytes) : size_(std::max(kLeastBytes, kRoomOfCap * cap_bytes)) {
  const int file = ::memfd_create("software accelerator", MFD_CLOEXEC);
  TORCH_CHECK(file >= 0 && ::ftruncate(file, size_) == 0,
              "software accelerator: no file in memory: ", std::strerror(errno));
  shown_ = mapped(file, size_, PROT_NONE);
  usable_ = mapped(file, size_, PROT_READ | PROT_WRITE);
  ::close(file);
  gaps_[0] = size_;
}

std::optional<std::int64_t> Region::take(std::int64_t bytes) {
  const auto gap =
      std::find_if(gaps_.begin(), gaps_.end(), [&](const auto& g) { return g.second >= bytes; });
  if (gap == gaps_.end()) return std::nullopt;
  const auto [offset, room] = *gap;
  gaps_.erase(gap);
  if (room > bytes) gaps_[offset + bytes] = room - bytes;
  if (offset + bytes > first_fresh_) {
    std::memset(usable_ + first_fresh_, 0xFF,
                static_cast<std::size_t>(offset + bytes - first_fresh_));
    first_fresh_ = offset + bytes;
  }
  return offset;
}

void Region::give(std::int64_t offset, std::int64_t bytes) {
  auto gap = gaps_.emplace(offset, bytes).first;
  const auto after = std::next(gap);
  if (after != gaps_.end() && gap->first + gap->second == after->first) {
    gap->second += after->second;
    gaps_.erase(after);
  }
  if (gap == gaps_.begin()) return;
  const auto before = std::prev(gap);
  if (before->first + before->second != gap->first) return;
  before->second += gap->second;
  gaps_.erase(gap);
}

}  // namespace sluice::soft_accelerator
