#pragma once
// The device seam: a drive with an update engine beside it, joined by an internal link, and memory
// of its own. The state of the optimizer is read, updated and written without leaving the device;
// only gradients go down and parameters come up.
//
// tests/core/csd/device_conformance.h is what every implementation is run through.
//
// Thread contract: called from the schedule's thread; each call makes an operation to be awaited,
// and each operation is recorded with its bytes, times and device. Buffers and what an order points
// to live until then.
// Errors: those of the transfers and of run_update(), as the awaited Status.

#include "core/csd/device_memory.h"
#include "core/csd/drive.h"
#include "core/csd/update_task.h"

namespace sluice::csd {

// Between the drive and a buffer from its beginning; padding as in HostTransfer.
struct DeviceTransfer {
  std::int64_t offset_bytes = 0;  // in the stage's file
  const DeviceBuffer* buffer = nullptr;
  std::int64_t size_bytes = 0;
};

// The arrays of one subgroup in the device's memory.
struct UpdateBuffers {
  std::array<const DeviceBuffer*, kMaxStoredArrays> state{};  // as many as the task has stored
  const DeviceBuffer* gradient = nullptr;
  // Receives the 16-bit copy of state in fp32; null: none is made. Split state has it.
  const DeviceBuffer* parameters = nullptr;
};

class CsdDevice : public Drive {
 public:
  using Drive::Drive;
  virtual DeviceMemory& memory() = 0;
  // Whether the drive's files are where the device can reach them; asked once they are there,
  // before the first transfer.
  virtual Status check_files() { return ok_status(); }
  // Nothing that was started touches a buffer from here on, nor is anything started any more.
  // Called before buffers go, since an operation that was given up may still be running.
  virtual void stop() = 0;

  // Drive to device memory and back, over the internal link; the host link carries nothing.
  virtual runtime::Operation read(const TransferLabel& label, const DeviceTransfer& transfer) = 0;
  virtual runtime::Operation write(const TransferLabel& label, const DeviceTransfer& transfer) = 0;
  // The update kernel on one subgroup in device memory.
  virtual runtime::Operation update(const UpdateOrder& order, const UpdateBuffers& buffers,
                                    UpdatedChecksums& updated) = 0;
  // Device memory to host memory, over the host link but not through the drive. `host` has at least
  // `size_bytes`, or is empty where there is no payload.
  virtual runtime::Operation sync_from_device(const TransferLabel& label, const DeviceRange& device,
                                              std::span<std::byte> host,
                                              std::int64_t size_bytes) = 0;
  // The other way: into device memory.
  virtual runtime::Operation sync_to_device(const TransferLabel& label,
                                            std::span<const std::byte> host,
                                            const DeviceRange& device, std::int64_t size_bytes) = 0;
};

}  // namespace sluice::csd
