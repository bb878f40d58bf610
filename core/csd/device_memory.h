#pragma once
// The memory beside a device's update engine (its DRAM): a budget that is never exceeded. For an
// emulated device it is host memory that stands in for it; without a payload (simulated time) it is
// only counted.
//
// Thread contract: allocation before the run's first step, from one thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::csd {

enum class Payload : std::uint8_t { real, none };

// A run of device memory. `bytes` is empty where there is no payload.
struct DeviceBuffer {
  std::span<std::byte> bytes;
  std::int64_t size_bytes = 0;
};

class DeviceMemory {
 public:
  DeviceMemory(std::string device_name, std::int64_t budget_bytes, Payload payload)
      : device_name_(std::move(device_name)), budget_bytes_(budget_bytes), payload_(payload) {}

  // More than is left of the budget is ErrorCode::memory, and says how much is left.
  Result<DeviceBuffer> allocate(std::int64_t size_bytes);
  std::int64_t budget_bytes() const { return budget_bytes_; }
  std::int64_t used_bytes() const { return used_bytes_; }
  // What was really taken, for registration with the I/O engine.
  std::vector<std::span<std::byte>> regions();

 private:
  std::string device_name_;
  std::int64_t budget_bytes_;
  Payload payload_;
  std::int64_t used_bytes_ = 0;
  std::vector<io::PageAlignedBuffer> buffers_;
};

}  // namespace sluice::csd
