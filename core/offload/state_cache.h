#pragma once
// Subgroups whose optimizer state stays in memory from one step to the next (the setting
// state_cache): which they are, and what is known of each. The buffers themselves belong to the
// sites (update_site.h): host memory with method=host, the device's own with method=csd.
//
// The set is fixed. Every step visits all subgroups of a device in the same order, so what was used
// last is needed last: keeping what is recent would keep nothing, and any fixed set saves as much
// as another. The one taken here is spread evenly over the devices and over each one's order, so
// that no drive has more left to do than another, nor at one time more than at another.
//
// Thread contract: the schedule's thread.

#include <vector>

#include "base/id_vector.h"
#include "base/ids.h"
#include "core/offload/offload_options.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

// By the device that updates them, in flat order.
using KeptSubgroups = IdVector<DeviceId, std::vector<SubgroupId>>;

// The memory that the state of one kept subgroup takes: whole pages.
std::int64_t kept_subgroup_bytes(const state::Geometry& geometry);
// As many as options.state_cache_bytes hold: in all with method=host, of each device with
// method=csd. `device_map`: which device updates what.
KeptSubgroups choose_kept(const OffloadOptions& options, const state::Geometry& geometry,
                          const state::DeviceMap& device_map);
// The number of them on all devices together.
std::int64_t count_of(const KeptSubgroups& kept);

class StateCache {
 public:
  StateCache(KeptSubgroups kept, const state::Geometry& geometry);

  const KeptSubgroups& kept() const { return kept_; }
  bool keeps(SubgroupId subgroup) const { return place_of(subgroup) >= 0; }
  // Its number among the kept ones of its device; -1: it does not stay.
  std::int32_t place_of(SubgroupId subgroup) const { return entries_[subgroup].place; }

  // Whether the newest version of one variable, or of all, is in memory.
  bool has(SubgroupId subgroup, std::int32_t variable) const;
  bool has_all(SubgroupId subgroup) const;
  // It has been read. What does not stay is not noted.
  void on_read(SubgroupId subgroup, std::int32_t variable);
  // It has been updated in place; `is_written`: its step also writes it.
  void on_updated(SubgroupId subgroup, bool is_written) {
    entries_[subgroup].is_unwritten = keeps(subgroup) && !is_written;
  }
  // The version in memory is not the newest, which the drives have: it is to be read again.
  void forget(SubgroupId subgroup);
  // Whether its newest version is in memory alone.
  bool is_unwritten(SubgroupId subgroup) const { return entries_[subgroup].is_unwritten; }
  void on_written(SubgroupId subgroup) { entries_[subgroup].is_unwritten = false; }

 private:
  struct Entry {
    std::int32_t place = -1;
    std::uint32_t read = 0;  // a bit a variable
    bool is_unwritten = false;
  };

  KeptSubgroups kept_;
  std::int32_t variable_count_;
  IdVector<SubgroupId, Entry> entries_;
};

}  // namespace sluice::offload
