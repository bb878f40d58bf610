#pragma once
// The device seam: a drive with an update engine beside it, joined by an internal link. The state
// of the optimizer is read, updated and written without leaving the device; only gradients go down
// and parameters come up.
//
// Thread contract: called from the schedule's thread; each call makes an operation to be awaited,
// and each operation is recorded with its bytes, times and device.
// Errors: those of the transfers and of run_update(), as the awaited Status.

#include "core/csd/device_memory.h"
#include "core/csd/drive.h"
#include "core/csd/update_command.h"

namespace sluice::csd {

class CsdDevice : public Drive {
 public:
  using Drive::Drive;
  // Drive to device memory and back, over the internal link; the host link carries nothing.
  virtual runtime::Operation read(const Owner& owner, const Transfer& transfer) = 0;
  virtual runtime::Operation write(const Owner& owner, const Transfer& transfer) = 0;
  // The update kernel on one subgroup in device memory. `command` and `updated` live until awaited.
  virtual runtime::Operation update(const UpdateCommand& command, UpdatedChecksums& updated) = 0;
  // Device memory to host memory, over the host link but not through the drive. Both spans are of
  // `size_bytes`, or empty where there is no payload.
  virtual runtime::Operation sync_from_device(const Owner& owner, std::span<const std::byte> device,
                                              std::span<std::byte> host,
                                              std::int64_t size_bytes) = 0;
  // The other way: into device memory.
  virtual runtime::Operation sync_to_device(const Owner& owner, std::span<const std::byte> host,
                                            std::span<std::byte> device,
                                            std::int64_t size_bytes) = 0;
};

}  // namespace sluice::csd
