#pragma once
// One buffer object as a driver keeps it: where it is on the device, and what the host has of it.
//
// Thread contract: any thread; two threads that sync overlapping ranges order themselves.
// Errors: memory and io from device memory and mmap; unsupported for what a SmartSSD lacks.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "soft/smartssd/device_memory.h"

namespace sluice::soft_smartssd {

enum class BufferKind : std::uint8_t {
  mirrored,     // on the device, and a copy on the host; only sync() makes them equal
  p2p,          // on the device, mapped: drives read and write it there
  device_only,  // on the device
  command,      // a packet for the scheduler, on the host
};

enum class P2pReach : std::uint8_t { whole, first_half };
enum class SyncTo : std::uint8_t { device, host };

class Buffer {
 public:
  // `host` is the caller's copy of a mirrored buffer; null: the buffer makes its own.
  static Result<std::shared_ptr<Buffer>> mirrored(std::shared_ptr<DeviceMemory> memory,
                                                  std::uint64_t size_bytes, void* host);
  static Result<std::shared_ptr<Buffer>> p2p(std::shared_ptr<DeviceMemory> memory,
                                             std::uint64_t size_bytes, P2pReach reach);
  static Result<std::shared_ptr<Buffer>> device_only(std::shared_ptr<DeviceMemory> memory,
                                                     std::uint64_t size_bytes);
  static Result<std::shared_ptr<Buffer>> command(std::uint64_t size_bytes);

  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  BufferKind kind() const { return kind_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::uint64_t address() const { return address_; }
  // The bytes that the host maps; empty for device_only.
  std::span<std::byte> host_bytes() const { return {host_, host_ == nullptr ? 0 : size_bytes_}; }
  // Empty for a command.
  std::span<std::byte> device_bytes() const;
  const DeviceMemory* memory() const { return memory_.get(); }

  bool has_range(std::uint64_t offset_bytes, std::uint64_t count_bytes) const {
    return offset_bytes <= size_bytes_ && count_bytes <= size_bytes_ - offset_bytes;
  }
  // The range lies within it. A P2P buffer has nothing to do; a device_only one cannot.
  Status sync(SyncTo to, std::uint64_t offset_bytes, std::uint64_t count_bytes) const;

 private:
  Buffer(BufferKind kind, std::uint64_t size_bytes) : kind_(kind), size_bytes_(size_bytes) {}

  static Result<std::shared_ptr<Buffer>> on_device(BufferKind kind,
                                                   std::shared_ptr<DeviceMemory> memory,
                                                   std::uint64_t size_bytes);
  // Host memory: the device's pages at this buffer, or new ones.
  Status map_host(int fd);

  BufferKind kind_;
  std::uint64_t size_bytes_;
  std::shared_ptr<DeviceMemory> memory_;  // null for a command
  std::uint64_t address_ = 0;
  std::byte* host_ = nullptr;
  std::size_t mapped_bytes_ = 0;  // of host_; 0: not this buffer's own
};

}  // namespace sluice::soft_smartssd
