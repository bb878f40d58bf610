#include "core/csd/device_memory.h"

#include "base/units.h"

namespace sluice::csd {

Result<DeviceBuffer> DeviceMemory::allocate(std::int64_t size_bytes) {
  const std::int64_t padded_bytes = round_up(size_bytes, kPageBytes);
  if (padded_bytes > budget_bytes_ - used_bytes_) {
    return make_error(ErrorCode::memory,
                      "{} has {} of device memory, {} of it in use: {} more do not fit; lower "
                      "buffers or subgroup_elements, or raise device_memory",
                      device_name_, format_bytes(budget_bytes_), format_bytes(used_bytes_),
                      format_bytes(padded_bytes));
  }
  DeviceBuffer buffer;
  buffer.size_bytes = size_bytes;
  if (payload_ == Payload::real) {
    ASSIGN_OR_RETURN(io::PageAlignedBuffer memory, io::PageAlignedBuffer::allocate(padded_bytes));
    buffers_.push_back(std::move(memory));
    buffer.bytes = buffers_.back().bytes();
  }
  used_bytes_ += padded_bytes;
  return buffer;
}

std::vector<std::span<std::byte>> DeviceMemory::regions() {
  std::vector<std::span<std::byte>> regions;
  for (io::PageAlignedBuffer& buffer : buffers_) regions.push_back(buffer.bytes());
  return regions;
}

}  // namespace sluice::csd
