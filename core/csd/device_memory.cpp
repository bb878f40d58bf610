#include "core/csd/device_memory.h"

#include "base/check.h"
#include "base/units.h"

namespace sluice::csd {

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  memory_ = std::exchange(other.memory_, nullptr);
  id_ = std::exchange(other.id_, -1);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

void DeviceBuffer::release() {
  if (memory_ == nullptr) return;
  memory_->used_bytes_ -= round_up(size_bytes_, kPageBytes);
  std::exchange(memory_, nullptr)->give_back(id_);
}

DeviceMemory::~DeviceMemory() { CHECK_EQ(used_bytes_, 0); }

Result<DeviceBuffer> DeviceMemory::allocate(std::int64_t size_bytes, Placement placement) {
  const std::int64_t padded_bytes = round_up(size_bytes, kPageBytes);
  if (padded_bytes > budget_bytes_ - used_bytes_) {
    return make_error(ErrorCode::memory,
                      "{} has {} of device memory, {} of it in use: {} more do not fit; lower "
                      "buffers or subgroup_elements, or raise device_memory",
                      device_name_, format_bytes(budget_bytes_), format_bytes(used_bytes_),
                      format_bytes(padded_bytes));
  }
  ASSIGN_OR_RETURN(const Taken taken, take(padded_bytes, placement));
  used_bytes_ += padded_bytes;
  DeviceBuffer buffer;
  buffer.memory_ = this;
  buffer.id_ = taken.id;
  buffer.size_bytes_ = size_bytes;
  buffer.bytes_ = taken.bytes;
  return buffer;
}

Result<DeviceMemory::Taken> EmulatedMemory::take(std::int64_t size_bytes, Placement /*placement*/) {
  io::PageAlignedBuffer memory;
  if (payload_ == Payload::real) {
    ASSIGN_OR_RETURN(memory, io::PageAlignedBuffer::allocate(size_bytes));
  }
  buffers_.push_back(std::move(memory));
  return Taken{static_cast<std::int32_t>(buffers_.size()) - 1, buffers_.back().bytes()};
}

void EmulatedMemory::give_back(std::int32_t id) { buffers_[static_cast<std::size_t>(id)] = {}; }

std::vector<std::span<std::byte>> EmulatedMemory::registrable_regions() {
  std::vector<std::span<std::byte>> regions;
  for (io::PageAlignedBuffer& buffer : buffers_) {
    if (buffer.size_bytes() > 0) regions.push_back(buffer.bytes());
  }
  return regions;
}

}  // namespace sluice::csd
