#pragma once
// What of the optimizer state stays in memory from one step to the next: all of some subgroups (the
// setting state_cache), which they are, and what is known of each. The buffers themselves belong to
// the sites (update_site.h): host memory with method=host, the device's own with method=csd. And of
// every subgroup the first variable, where that is the copy that forward reads
// (OffloadOptions::has_copy_in_memory()).
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
std::int64_t kept_subgroup_bytes(const OffloadOptions& options, const state::Geometry& geometry);
// As many as options.state_cache_bytes hold: in all with method=host, of each device with
// method=csd. `device_map`: which device updates what.
KeptSubgroups choose_kept(const OffloadOptions& options, const state::Geometry& geometry,
                          const state::DeviceMap& device_map);
// The number of them on all devices together.
std::int64_t count_of(const KeptSubgroups& kept);

class StateCache {
 public:
  StateCache(KeptSubgroups kept, const OffloadOptions& options, const state::Geometry& geometry);

  const KeptSubgroups& kept() const { return kept_; }
  bool keeps(SubgroupId subgroup) const { return place_of(subgroup) >= 0; }
  // Its number among the kept ones of its device; -1: it does not stay.
  std::int32_t place_of(SubgroupId subgroup) const { return entries_[subgroup].place; }

  // Whether the variable is one that stays.
  bool stays(SubgroupId subgroup, std::int32_t variable) const {
    return is_copy(variable) || keeps(subgroup);
  }
  // Whether the newest version of the variable is in memory.
  bool has(SubgroupId subgroup, std::int32_t variable) const;
  // It has been read. What does not stay is not noted; nor is the copy, which an update brings to
  // its place.
  void on_read(SubgroupId subgroup, std::int32_t variable);
  // It has been updated in place; `is_written`: its step also writes what stays.
  void on_updated(SubgroupId subgroup, bool is_written);
  // The version in memory is not the newest, which the drives have: it is to be read again.
  void forget(SubgroupId subgroup);
  // The parameters have been read from the drives to where forward reads them.
  void on_loaded(SubgroupId subgroup);
  // Whether the variable's newest version is in memory alone.
  bool is_unwritten(SubgroupId subgroup, std::int32_t variable) const {
    return (entries_[subgroup].unwritten >> variable & 1u) != 0;
  }
  void on_written(SubgroupId subgroup) { entries_[subgroup].unwritten = 0; }

 private:
  struct Entry {  // a bit a variable
    std::int32_t place = -1;
    std::uint32_t there = 0;
    std::uint32_t unwritten = 0;
  };

  bool is_copy(std::int32_t variable) const { return has_copy_ && variable == 0; }

  KeptSubgroups kept_;
  std::int32_t variable_count_;
  bool has_copy_;  // the first variable of every subgroup stays
  IdVector<SubgroupId, Entry> entries_;
};

}  // namespace sluice::offload
