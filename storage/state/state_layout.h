#pragma once
// Where each subgroup's optimizer state lies: pure arithmetic, no files, so that the simulated
// clock uses it too.
//
// The flat parameters [0, parameter_count) are cut into subgroups of `subgroup_elements` (the last
// may be shorter). On the device that owns a subgroup its state occupies a slot: `variable_count`
// arrays (master_weights, exp_avg, exp_avg_sq for Adam) of fp32, one after the other, each padded
// to whole pages. Every slot of a device has one size, that of a full subgroup. A device has two
// slots for every subgroup it owns (D3: a step reads one and writes the other), and free slots are
// handed out lowest first, so a layout is a function of its inputs and of the history of commits.
//
// Thread contract: used by one thread.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "base/units.h"

namespace sluice::state {

struct Extent {
  std::int64_t offset_bytes = 0;
  std::int64_t size_bytes = 0;  // with padding: a whole number of pages
};

struct SlotId {
  DeviceId device = kNoDevice;
  std::int32_t index = -1;
  friend bool operator==(const SlotId&, const SlotId&) = default;
};

struct Geometry {
  std::int64_t parameter_count = 0;
  std::int64_t subgroup_elements = 0;
  std::int32_t variable_count = 3;
  std::int32_t device_count = 1;

  std::int32_t subgroup_count() const {
    return static_cast<std::int32_t>(divide_up(parameter_count, subgroup_elements));
  }
  std::int64_t first_element(SubgroupId subgroup) const {
    return index_of(subgroup) * subgroup_elements;
  }
  std::int64_t element_count(SubgroupId subgroup) const;
  std::int64_t variable_bytes() const {
    return round_up(subgroup_elements * 4, kPageBytes);
  }  // one array in a slot
  std::int64_t slot_bytes() const { return variable_bytes() * variable_count; }
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

// Which device owns which subgroup.
using DeviceMap = std::vector<DeviceId>;

// Cuts the subgroups into one contiguous run a device, proportional to `shares` (largest remainder,
// ties to the lower device), or dealt round-robin by weight when `interleaved`. Shares are >= 0
// with at least one > 0.
DeviceMap make_device_map(std::int32_t subgroup_count, const std::vector<double>& shares);

class Layout {
 public:
  // Gives every subgroup a first slot on its device.
  Layout(const Geometry& geometry, DeviceMap device_map);
  // As committed earlier: `current[s]` is where subgroup s lies.
  Layout(const Geometry& geometry, std::vector<SlotId> current);

  const Geometry& geometry() const { return geometry_; }
  SlotId current(SubgroupId subgroup) const { return current_[index_of(subgroup)]; }
  DeviceId device(SubgroupId subgroup) const { return current(subgroup).device; }
  std::int32_t slot_count(DeviceId device) const;

  // Where the next version of a subgroup is to be written: a free slot of `device`, taken until
  // commit() or abandon().
  SlotId take_next(SubgroupId subgroup, DeviceId device);
  // All next versions taken become current, and the slots they replace become free.
  void commit();
  // The next versions taken are forgotten and their slots become free.
  void abandon();

  // Extent of one variable's array in a slot: of the data area of the device's file, which starts
  // after its header. `element_count` elements, rounded up to whole pages.
  Extent extent(SlotId slot, std::int32_t variable, std::int64_t element_count) const;
  std::int64_t data_bytes(DeviceId device) const;  // of the device's data area

 private:
  Geometry geometry_;
  std::vector<SlotId> current_;
  std::vector<SlotId> next_;                           // kNoDevice where none is taken
  std::vector<std::vector<std::int32_t>> free_slots_;  // a device; sorted, highest first
  std::vector<std::int32_t> slot_count_;
};

}  // namespace sluice::state
