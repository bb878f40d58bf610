#pragma once
// The memory beside a device's update engine (its DRAM). It belongs to the device: a budget that is
// never exceeded, from which buffers are taken. A DeviceBuffer is a type of its own, so that host
// memory where device memory is meant does not compile; it gives itself back.
//
// Thread contract: buffers are taken and given back on the schedule's thread, between steps. The
// memory outlives its buffers.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::csd {

// Whether bytes are really moved and computed with, or only counted (simulated time).
enum class Payload : std::uint8_t { real, none };

// The use of a buffer; a device may have banks of its own for each.
enum class Placement : std::uint8_t { state, gradient, parameters };

class DeviceMemory;

// A run of device memory. Move-only.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer() { release(); }

  bool empty() const { return memory_ == nullptr; }
  std::int64_t size_bytes() const { return size_bytes_; }
  // Where the host can reach it (an emulated device's memory, a P2P window); empty elsewhere, and
  // without payload.
  std::span<std::byte> bytes() const { return bytes_; }
  // Names it inside its device's memory, as a buffer object does.
  std::int32_t id() const { return id_; }

 private:
  friend class DeviceMemory;
  void release();

  DeviceMemory* memory_ = nullptr;
  std::int32_t id_ = -1;
  std::int64_t size_bytes_ = 0;
  std::span<std::byte> bytes_;
};

// A part of a buffer.
struct DeviceRange {
  const DeviceBuffer* buffer = nullptr;
  std::int64_t offset_bytes = 0;
};

class DeviceMemory {
 public:
  DeviceMemory(std::string device_name, std::int64_t budget_bytes)
      : device_name_(std::move(device_name)), budget_bytes_(budget_bytes) {}
  virtual ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Whole pages are taken. More than is left of the budget is ErrorCode::memory, and says how much
  // is left.
  Result<DeviceBuffer> allocate(std::int64_t size_bytes, Placement placement);
  std::int64_t budget_bytes() const { return budget_bytes_; }
  std::int64_t used_bytes() const { return used_bytes_; }
  // The memory that drives can be told to read into and write from, for registration with the I/O
  // engine. Memory that cannot be registered is left out.
  virtual std::vector<std::span<std::byte>> registrable_regions() { return {}; }

 protected:
  struct Taken {
    std::int32_t id = -1;
    std::span<std::byte> bytes;
  };
  // `size_bytes` is whole pages, and within the budget.
  virtual Result<Taken> take(std::int64_t size_bytes, Placement placement) = 0;
  virtual void give_back(std::int32_t id) = 0;

 private:
  friend class DeviceBuffer;

  std::string device_name_;
  std::int64_t budget_bytes_;
  std::int64_t used_bytes_ = 0;
};

// Host memory that stands in for a device's, or without payload only its count.
class EmulatedMemory final : public DeviceMemory {
 public:
  EmulatedMemory(std::string device_name, std::int64_t budget_bytes, Payload payload)
      : DeviceMemory(std::move(device_name), budget_bytes), payload_(payload) {}
  std::vector<std::span<std::byte>> registrable_regions() override;

 private:
  Result<Taken> take(std::int64_t size_bytes, Placement placement) override;
  void give_back(std::int32_t id) override;

  Payload payload_;
  std::vector<io::PageAlignedBuffer> buffers_;  // by id; one given back is empty
};

}  // namespace sluice::csd
