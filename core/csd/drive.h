#pragma once
// The drive of a device as the host sees it: reads and writes over the host link. What method=host
// moves everything through, and method=csd its gradients.
//
// Thread contract: makes operations for the schedule's thread; the files outlive them.

#include "core/csd/drive_files.h"
#include "core/platform/platform.h"
#include "core/runtime/operation.h"

namespace sluice::csd {

// The name of a transfer in the record. The stage says which of the drive's files it moves.
struct TransferLabel {
  stages::Stage stage = stages::Stage::state_read;
  SubgroupId subgroup = kNoSubgroup;
  LayerId layer = kNoLayer;
  std::int32_t step = -1;  // -1: the one that the runtime is in
};

// The bytes that are moved: `size_bytes` of payload at the front of `bytes`, whose rest fills the
// last page.
struct HostTransfer {
  std::int64_t offset_bytes = 0;  // in the stage's file
  std::span<std::byte> bytes;     // empty where there is no payload
  std::int64_t size_bytes = 0;
};

struct DriveOptions {
  // The rate that a drive reaches depends on how much of a transfer it is asked for at once: the
  // size of a request times how many are in flight. A smaller transfer is asked for as a whole.
  std::int64_t inflight_bytes = 0;
};

class Drive {
 public:
  Drive(runtime::Runtime& runtime, const platform::Device& device, DeviceId id,
        const DriveOptions& options)
      : runtime_(runtime), device_(device), id_(id), options_(options) {}
  virtual ~Drive() = default;

  // Drive to host memory and back, over the host link.
  runtime::Operation host_read(const TransferLabel& label, const HostTransfer& transfer) const;
  runtime::Operation host_write(const TransferLabel& label, const HostTransfer& transfer) const;

  DeviceId id() const { return id_; }
  DriveFiles& files() { return files_; }
  const DriveFiles& files() const { return files_; }

 protected:
  runtime::Operation transfer_over(std::span<const platform::LinkId> route,
                                   platform::Direction direction, const TransferLabel& label,
                                   const HostTransfer& transfer) const;
  runtime::Runtime& runtime_;
  const platform::Device& device_;
  DeviceId id_;
  DriveOptions options_;
  DriveFiles files_;
};

}  // namespace sluice::csd
