#pragma once
// One software SmartSSD: its memory, its buffers, the xclbin that is loaded, and what was asked to
// go wrong. Whoever opens device i of this process gets the same one; it begins anew, with the
// settings of that moment, when it is opened while nobody has it.
//
// Thread contract: any thread.
// Errors: memory when device memory is full; unsupported for what a SmartSSD lacks; config for
// handles, ranges and units that are not there; busy for a unit that another has for itself; io
// once the device is lost, for every call.

#include <xclbin.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <unordered_map>

#include "soft/smartssd/buffer.h"
#include "soft/smartssd/completions.h"
#include "soft/smartssd/compute_units.h"
#include "soft/smartssd/faults.h"
#include "soft/smartssd/settings.h"

namespace sluice::soft_smartssd {

using BufferHandle = unsigned int;
inline constexpr std::uint64_t kForeignAddress = std::uint64_t{1} << 63;  // in no bank

// A bus that no machine has: domain 0x5357 is "SW".
std::array<std::uint16_t, 4> bdf_of(int device);  // domain, bus, device, function
std::string bdf_text(int device);                 // "5357:01:00.1"

enum class UnitAccess : std::uint8_t { shared, exclusive };

class SoftDevice {
 public:
  // `index` is below the settings' `devices`.
  static Result<std::shared_ptr<SoftDevice>> open(int index);

  int index() const { return index_; }
  bool is_lost() const { return is_lost_; }
  std::uint64_t memory_bytes() const { return memory_->budget_bytes(); }

  // `flags` are XRT's (xrt_mem.h). `host`: the caller's copy of a mirrored buffer, or null.
  Result<BufferHandle> allocate(std::uint64_t size_bytes, unsigned flags, void* host);
  void free(BufferHandle handle);
  Result<std::shared_ptr<Buffer>> buffer(BufferHandle handle) const;
  // For the compute units of this device: another's memory they cannot reach (kForeignAddress).
  std::uint64_t address_of(const Buffer& buffer) const {
    return buffer.memory() == memory_.get() ? buffer.address() : kForeignAddress;
  }
  Status sync(BufferHandle handle, SyncTo to, std::uint64_t count_bytes,
              std::uint64_t offset_bytes);
  struct Copy {
    BufferHandle to, from;
    std::uint64_t to_offset_bytes, from_offset_bytes, count_bytes;
  };
  Status copy(const Copy& copy);
  // A file descriptor that import_buffer() of any device of this process takes.
  Result<int> export_buffer(BufferHandle handle) const;
  Result<BufferHandle> import_buffer(int fd);
  static Status close_export(int fd);

  // `file` has been checked by nobody. What is loaded already stays; another is refused while units
  // of the loaded one are in use.
  Status load(std::span<const std::byte> file);
  Status open_context(std::span<const std::byte> uuid, unsigned unit, UnitAccess access);
  void close_context(unsigned unit);

  Status execute(BufferHandle packet);
  bool wait(std::uint64_t& seen, std::chrono::milliseconds timeout);
  Result<std::uint32_t> read_register(unsigned unit, std::uint32_t offset_bytes);
  Status write_register(unsigned unit, std::uint32_t offset_bytes, std::uint32_t value);

 private:
  struct Access {
    int shared_count = 0;
    bool is_exclusive = false;
  };

  SoftDevice(int index, const Settings& settings, const Rates& rates,
             std::shared_ptr<DeviceMemory> memory);

  Status check_present() const;
  BufferHandle keep(std::shared_ptr<Buffer> buffer);
  Result<std::shared_ptr<ComputeUnits>> units() const;
  Status start(std::shared_ptr<Buffer> packet);
  Status copy_by_packet(const Buffer& packet);
  void finish(std::shared_ptr<Buffer> packet, ert_cmd_state state);
  void draw_faults(Run& run);

  const int index_;
  const Settings settings_;
  const Rates rates_;
  const std::shared_ptr<DeviceMemory> memory_;
  Faults faults_;
  Completions completions_;
  std::atomic<bool> is_lost_{false};
  std::atomic<std::uint64_t> run_count_{0};

  Mutex loading_;  // held by a whole load(), before mutex_
  mutable Mutex mutex_;
  std::unordered_map<BufferHandle, std::shared_ptr<Buffer>> buffers_ GUARDED_BY(mutex_);
  BufferHandle next_handle_ GUARDED_BY(mutex_) = 1;
  std::array<std::byte, 16> uuid_ GUARDED_BY(mutex_){};
  std::map<unsigned, Access> contexts_ GUARDED_BY(mutex_);
  // Last, so that it ends first: its threads use all of the above.
  std::shared_ptr<ComputeUnits> units_ GUARDED_BY(mutex_);
};

}  // namespace sluice::soft_smartssd
