#pragma once
// Where the gradients of a step wait for their update: on the drive of the device that updates the
// subgroup (gradient_tier=storage), or in host memory.
//
// Thread contract: the schedule's thread.

#include <memory>

#include "base/id_vector.h"
#include "core/offload/gradient_format.h"

namespace sluice::csd {
class Drive;
}
namespace sluice::runtime {
struct Operation;
}

namespace sluice::offload {

class OffloadMemory;
class StateVersions;

class GradientStore {
 public:
  GradientStore(const GradientFormat& format, const StateVersions& versions,
                const IdVector<DeviceId, std::unique_ptr<csd::Drive>>& drives,
                OffloadMemory& memory, GradientTier tier);

  bool is_in_memory() const { return tier_ == GradientTier::memory; }
  // In memory: the subgroup's gradient. Empty without payload.
  std::span<std::byte> memory(SubgroupId subgroup) const;
  // On the drive: where the subgroup's gradient begins in its device's scratch file.
  std::int64_t offset_bytes(SubgroupId subgroup) const { return offset_bytes_[subgroup]; }
  // On the drive: `size_bytes` of the subgroup's gradient, `first_bytes` behind its beginning.
  runtime::Operation write(SubgroupId subgroup, std::int64_t first_bytes,
                           std::span<std::byte> bytes, std::int64_t size_bytes) const;
  // The same the other way.
  runtime::Operation read(SubgroupId subgroup, std::int64_t first_bytes, std::span<std::byte> bytes,
                          std::int64_t size_bytes) const;
  std::int64_t size_bytes(SubgroupId subgroup) const { return format_.size_bytes(subgroup); }

 private:
  const GradientFormat& format_;
  const StateVersions& versions_;
  const IdVector<DeviceId, std::unique_ptr<csd::Drive>>& drives_;
  OffloadMemory& memory_;
  GradientTier tier_;
  IdVector<SubgroupId, std::int64_t> offset_bytes_;
};

// Bytes of a device's scratch file for gradients.
std::int64_t gradient_file_bytes(const GradientFormat& format, const state::DeviceMap& device_map,
                                 DeviceId device, const OffloadOptions& options);

}  // namespace sluice::offload
