#pragma once
// The drive of a device as the host sees it: reads and writes over the host link. What method=host
// moves everything through, and method=csd its gradients.
//
// Thread contract: makes operations for the schedule's thread; the files outlive them.

#include "core/platform/platform.h"
#include "core/runtime/operation.h"

namespace sluice::csd {

// A place on the drive. `file` is null where there is no payload.
struct DrivePlace {
  const io::File* file = nullptr;
  std::int64_t offset_bytes = 0;
};

// Who an operation belongs to.
struct Owner {
  runtime::Stage stage = runtime::Stage::state_read;
  SubgroupId subgroup = kNoSubgroup;
  LayerId layer = kNoLayer;
  std::int32_t step = -1;  // -1: the one that the runtime is in
};

// What is moved: `size_bytes` of payload at the front of `bytes`, whose rest fills the last page.
struct Transfer {
  DrivePlace place;
  std::span<std::byte> bytes;  // empty where there is no payload
  std::int64_t size_bytes = 0;
};

// What a drive reaches depends on how much of a transfer it is asked for at once: `inflight_bytes`
// is the size of a request times how many are in flight, and a smaller transfer is asked for as a
// whole.
class Drive {
 public:
  Drive(runtime::Runtime& runtime, const platform::Device& device, DeviceId id,
        std::int64_t inflight_bytes)
      : runtime_(runtime), device_(device), id_(id), inflight_bytes_(inflight_bytes) {}
  virtual ~Drive() = default;

  // Drive to host memory and back, over the host link.
  runtime::Operation host_read(const Owner& owner, const Transfer& transfer) const;
  runtime::Operation host_write(const Owner& owner, const Transfer& transfer) const;

 protected:
  runtime::Operation transfer_over(std::span<const platform::LinkId> route,
                                   platform::Direction direction, const Owner& owner,
                                   const Transfer& transfer) const;
  runtime::Runtime& runtime_;
  const platform::Device& device_;
  DeviceId id_;
  std::int64_t inflight_bytes_;
};

}  // namespace sluice::csd
