#include "core/offload/state_cache.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::offload {
namespace {

// Whether the i-th of `count` is among `chosen` that are spread evenly over them: where
// i * chosen / count passes a half.
bool is_chosen(std::int64_t i, std::int64_t chosen, std::int64_t count) {
  const auto passed = [&](std::int64_t n) { return (2 * n * chosen + count) / (2 * count); };
  return passed(i + 1) > passed(i);
}

KeptSubgroups subgroups_by_device(const state::Geometry& geometry,
                                  const state::DeviceMap& device_map) {
  CHECK_EQ(std::ssize(device_map), geometry.subgroup_count());
  KeptSubgroups of_device(geometry.device_count);
  for (const SubgroupId subgroup : all_ids<SubgroupId>(geometry.subgroup_count())) {
    of_device[device_map[static_cast<std::size_t>(index_of(subgroup))]].push_back(subgroup);
  }
  return of_device;
}

}  // namespace

std::int64_t kept_subgroup_bytes(const OffloadOptions& options, const state::Geometry& geometry) {
  const std::int64_t elements = std::min(geometry.subgroup_elements, geometry.parameter_count);
  std::int64_t size_bytes = 0;
  for (std::int32_t v = options.has_copy_in_memory() ? 1 : 0; v < geometry.variable_count; ++v) {
    size_bytes += round_up(geometry.array_bytes(v, elements), kPageBytes);
  }
  return size_bytes;
}

KeptSubgroups choose_kept(const OffloadOptions& options, const state::Geometry& geometry,
                          const state::DeviceMap& device_map) {
  const std::int64_t room = options.state_cache_bytes / kept_subgroup_bytes(options, geometry);
  KeptSubgroups kept(geometry.device_count);
  if (room == 0) return kept;
  const KeptSubgroups all = subgroups_by_device(geometry, device_map);
  const std::int64_t total_count = geometry.subgroup_count();
  std::int64_t passed = 0;  // subgroups of the devices before
  for (const DeviceId device : ids_of(all)) {
    const std::int64_t own_count = std::ssize(all[device]);
    for (std::int64_t i = 0; i < own_count; ++i) {
      const bool stays = options.method == Method::host
                             ? is_chosen(passed + i, std::min(room, total_count), total_count)
                             : is_chosen(i, std::min(room, own_count), own_count);
      if (stays) kept[device].push_back(all[device][static_cast<std::size_t>(i)]);
    }
    passed += own_count;
  }
  return kept;
}

std::int64_t count_of(const KeptSubgroups& kept) {
  std::int64_t count = 0;
  for (const std::vector<SubgroupId>& of_device : kept) count += std::ssize(of_device);
  return count;
}

StateCache::StateCache(KeptSubgroups kept, const OffloadOptions& options,
                       const state::Geometry& geometry)
    : kept_(std::move(kept)),
      variable_count_(geometry.variable_count),
      has_copy_(options.has_copy_in_memory()),
      entries_(geometry.subgroup_count()) {
  for (const SubgroupId subgroup : ids_of(entries_)) on_loaded(subgroup);
  for (const std::vector<SubgroupId>& of_device : kept_) {
    std::int32_t place = 0;
    for (const SubgroupId subgroup : of_device) entries_[subgroup].place = place++;
  }
}

bool StateCache::has(SubgroupId subgroup, std::int32_t variable) const {
  return (entries_[subgroup].there >> variable & 1u) != 0;
}

void StateCache::forget(SubgroupId subgroup) {
  entries_[subgroup].there = 0;
  entries_[subgroup].unwritten = 0;
}

void StateCache::on_loaded(SubgroupId subgroup) {
  if (has_copy_) entries_[subgroup].there |= 1u;
}

void StateCache::on_read(SubgroupId subgroup, std::int32_t variable) {
  if (keeps(subgroup) && !is_copy(variable)) entries_[subgroup].there |= 1u << variable;
}

void StateCache::on_updated(SubgroupId subgroup, bool is_written) {
  on_loaded(subgroup);
  entries_[subgroup].unwritten = 0;
  for (std::int32_t v = 0; v < variable_count_ && !is_written; ++v) {
    if (stays(subgroup, v)) entries_[subgroup].unwritten |= 1u << v;
  }
}

}  // namespace sluice::offload
