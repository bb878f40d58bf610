#include "soft/smartssd/device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "hls/link/xclbin.h"

namespace sluice::soft_smartssd {

namespace {

using hls_link::kBankBytes;

constexpr std::uint64_t kDevicePageBytes = 4096;
constexpr std::byte kRedZone{0xa7};

std::uint64_t in_pages(std::uint64_t size_bytes) {
  return (size_bytes + kDevicePageBytes - 1) / kDevicePageBytes * kDevicePageBytes;
}

}  // namespace

Result<std::shared_ptr<DeviceMemory>> DeviceMemory::create(std::uint64_t budget_bytes) {
  const int fd = memfd_create("sluice_soft_smartssd", MFD_CLOEXEC);
  if (fd < 0) return make_error(ErrorCode::io, "memfd_create: {}", std::strerror(errno));
  void* bank = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(kBankBytes)) == 0)
    bank = mmap(nullptr, kBankBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (bank == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return make_error(ErrorCode::io, "4 GiB of device memory: {}", std::strerror(error));
  }
  return std::shared_ptr<DeviceMemory>(
      new DeviceMemory(fd, static_cast<std::byte*>(bank), budget_bytes));
}

DeviceMemory::~DeviceMemory() {
  munmap(bank_, kBankBytes);
  close(fd_);
}

std::uint64_t DeviceMemory::first_fit(std::uint64_t pages_bytes) const {
  std::uint64_t place = kDevicePageBytes;
  for (const auto& [address, size_bytes] : sizes_) {
    if (place + pages_bytes <= address) break;
    place = address + in_pages(size_bytes) + kDevicePageBytes;
  }
  return place + pages_bytes <= kBankBytes ? place : 0;
}

Result<std::uint64_t> DeviceMemory::allocate(std::uint64_t size_bytes) {
  const std::uint64_t pages_bytes = in_pages(size_bytes);
  std::uint64_t place = 0;
  {
    MutexLock lock(mutex_);
    // One page more than the buffer; the size first, so that the sum cannot wrap.
    const bool fits =
        size_bytes > 0 && size_bytes <= budget_bytes_ && pages_bytes <= budget_bytes_ - used_bytes_;
    if (fits) place = first_fit(pages_bytes + kDevicePageBytes);
    if (place == 0)
      return make_error(ErrorCode::memory,
                        "device memory is full: {} bytes asked for, {} of {} in use", size_bytes,
                        used_bytes_, budget_bytes_);
    sizes_[place] = size_bytes;
    used_bytes_ += pages_bytes;
  }
  std::fill_n(at(place), pages_bytes, kPoison);
  std::fill_n(at(place + pages_bytes), kDevicePageBytes, kRedZone);
  return place;
}

void DeviceMemory::release(std::uint64_t address) {
  MutexLock lock(mutex_);
  const auto found = sizes_.find(address);
  if (found == sizes_.end()) return;
  const std::uint64_t pages_bytes = in_pages(found->second);
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address),
            static_cast<off_t>(pages_bytes + kDevicePageBytes));
  used_bytes_ -= pages_bytes;
  sizes_.erase(found);
}

std::uint64_t DeviceMemory::room_at(std::uint64_t address) const {
  MutexLock lock(mutex_);
  auto found = sizes_.upper_bound(address);
  if (found == sizes_.begin()) return 0;
  --found;
  const std::uint64_t end = found->first + found->second;
  return address < end ? end - address : 0;
}

bool DeviceMemory::is_overrun(std::uint64_t address) {
  const std::uint64_t room_bytes = room_at(address);
  if (room_bytes == 0) return false;
  std::byte* const behind = at(in_pages(address + room_bytes));
  const bool is_whole = std::all_of(behind, behind + kDevicePageBytes,
                                    [](std::byte value) { return value == kRedZone; });
  if (!is_whole) std::fill_n(behind, kDevicePageBytes, kRedZone);
  return !is_whole;
}

std::uint64_t DeviceMemory::used_bytes() const {
  MutexLock lock(mutex_);
  return used_bytes_;
}

}  // namespace sluice::soft_smartssd
