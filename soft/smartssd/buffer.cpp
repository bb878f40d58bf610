#include "soft/smartssd/buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/units.h"

namespace sluice::soft_smartssd {

Buffer::~Buffer() {
  if (mapped_bytes_ != 0) munmap(host_, mapped_bytes_);
  if (address_ != 0) memory_->release(address_);
}

Result<std::shared_ptr<Buffer>> Buffer::on_device(BufferKind kind,
                                                  std::shared_ptr<DeviceMemory> memory,
                                                  std::uint64_t size_bytes) {
  std::shared_ptr<Buffer> buffer(new Buffer(kind, size_bytes));
  ASSIGN_OR_RETURN(buffer->address_, memory->allocate(size_bytes));
  buffer->memory_ = std::move(memory);
  return buffer;
}

Status Buffer::map_host(int fd) {
  const std::size_t bytes =
      static_cast<std::size_t>(round_up(static_cast<std::int64_t>(size_bytes_), kPageBytes));
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  const off_t offset = fd < 0 ? 0 : static_cast<off_t>(address_);
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
  if (mapped == MAP_FAILED)
    return make_error(ErrorCode::memory, "{} bytes of host memory for a buffer: {}", bytes,
                      std::strerror(errno));
  host_ = static_cast<std::byte*>(mapped);
  mapped_bytes_ = bytes;
  return ok_status();
}

Result<std::shared_ptr<Buffer>> Buffer::mirrored(std::shared_ptr<DeviceMemory> memory,
                                                 std::uint64_t size_bytes, void* host) {
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                   on_device(BufferKind::mirrored, std::move(memory), size_bytes));
  buffer->host_ = static_cast<std::byte*>(host);
  if (host == nullptr) RETURN_IF_ERROR(buffer->map_host(-1));
  return buffer;
}

Result<std::shared_ptr<Buffer>> Buffer::p2p(std::shared_ptr<DeviceMemory> memory,
                                            std::uint64_t size_bytes, P2pReach reach) {
  const int fd = memory->fd();
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                   on_device(BufferKind::p2p, std::move(memory), size_bytes));
  RETURN_IF_ERROR(buffer->map_host(fd));
  if (reach == P2pReach::first_half) {
    const auto half = static_cast<std::size_t>(
        round_down(static_cast<std::int64_t>(buffer->mapped_bytes_ / 2), kPageBytes));
    mprotect(buffer->host_ + half, buffer->mapped_bytes_ - half, PROT_NONE);
  }
  return buffer;
}

Result<std::shared_ptr<Buffer>> Buffer::device_only(std::shared_ptr<DeviceMemory> memory,
                                                    std::uint64_t size_bytes) {
  return on_device(BufferKind::device_only, std::move(memory), size_bytes);
}

Result<std::shared_ptr<Buffer>> Buffer::command(std::uint64_t size_bytes) {
  std::shared_ptr<Buffer> buffer(new Buffer(BufferKind::command, size_bytes));
  RETURN_IF_ERROR(buffer->map_host(-1));
  return buffer;
}

std::span<std::byte> Buffer::device_bytes() const {
  if (memory_ == nullptr) return {};
  return {memory_->at(address_), size_bytes_};
}

Status Buffer::sync(SyncTo to, std::uint64_t offset_bytes, std::uint64_t count_bytes) const {
  if (kind_ == BufferKind::p2p || kind_ == BufferKind::command) return ok_status();
  if (kind_ == BufferKind::device_only)
    return make_error(ErrorCode::unsupported, "a buffer that is on the device only has no copy");
  std::byte* const host = host_ + offset_bytes;
  std::byte* const device = memory_->at(address_) + offset_bytes;
  std::memcpy(to == SyncTo::device ? device : host, to == SyncTo::device ? host : device,
              count_bytes);
  return ok_status();
}

}  // namespace sluice::soft_smartssd
