#include "core/offload/gradient_store.h"

#include "core/csd/drive.h"
#include "core/offload/offload_memory.h"
#include "core/offload/state_versions.h"

namespace sluice::offload {

GradientStore::GradientStore(const GradientFormat& format, const StateVersions& versions,
                             const IdVector<DeviceId, std::unique_ptr<csd::Drive>>& drives,
                             OffloadMemory& memory, GradientTier tier)
    : format_(format), versions_(versions), drives_(drives), memory_(memory), tier_(tier) {
  IdVector<DeviceId, std::int64_t> used_bytes(drives.count());
  for (const SubgroupId subgroup : all_ids<SubgroupId>(versions.geometry().subgroup_count())) {
    std::int64_t& used = used_bytes[versions.device_of(subgroup)];
    offset_bytes_.push_back(used);
    used += round_up(format.size_bytes(subgroup), kPageBytes);
  }
}

std::span<std::byte> GradientStore::memory(SubgroupId subgroup) const {
  return memory_.gradient(subgroup);
}

runtime::Operation GradientStore::write(SubgroupId subgroup, std::int64_t first_bytes,
                                        std::span<std::byte> bytes, std::int64_t size_bytes) const {
  const csd::Drive& drive = *drives_[versions_.device_of(subgroup)];
  return drive.host_write({stages::Stage::gradient_down, subgroup},
                          {offset_bytes(subgroup) + first_bytes, bytes, size_bytes});
}

runtime::Operation GradientStore::read(SubgroupId subgroup, std::int64_t first_bytes,
                                       std::span<std::byte> bytes, std::int64_t size_bytes) const {
  const csd::Drive& drive = *drives_[versions_.device_of(subgroup)];
  return drive.host_read({stages::Stage::gradient_read, subgroup},
                         {offset_bytes(subgroup) + first_bytes, bytes, size_bytes});
}

std::int64_t gradient_file_bytes(const GradientFormat& format, const state::DeviceMap& device_map,
                                 DeviceId device, const OffloadOptions& options) {
  if (options.gradient_tier == GradientTier::memory) return 0;
  std::int64_t size_bytes = 0;
  for (std::size_t s = 0; s < device_map.size(); ++s) {
    if (device_map[s] != device) continue;
    const SubgroupId subgroup{static_cast<std::int32_t>(s)};
    size_bytes += round_up(format.size_bytes(subgroup), kPageBytes);
  }
  return size_bytes;
}

}  // namespace sluice::offload
