#pragma once
// Where each subgroup's optimizer state lies: pure arithmetic, no files, so that the simulated
// clock uses it too.
//
// The flat parameters [0, parameter_count) are cut into subgroups of `subgroup_elements` (the last
// may be shorter). On the device that owns a subgroup its state occupies a slot: `variable_count`
// arrays (for AdamW master_weights, exp_avg, exp_avg_sq) in fp32 or another code, one after the
// other, each padded to whole pages. Every slot of a device has one size, that of a full subgroup.
// A device starts with two slots for every subgroup it owns (D3: a step reads one and writes the
// other); a subgroup that moves to a device without a free slot makes that device grow by one. A
// commit that is kept (storage/state/kept_commits.h) holds its slots, which are free only once it
// is released: a device has one slot more for each of them. Free slots are handed out lowest first,
// so a layout is a function of its inputs and of the history of commits, and one that was opened
// again hands out the same slots as one that was never closed.
//
// Thread contract: used by one thread.

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/state_format.h"
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

inline constexpr SlotId kNoSlot{};

struct Geometry {
  std::int64_t parameter_count = 0;
  std::int64_t subgroup_elements = 0;
  std::int32_t variable_count = 3;
  std::int32_t device_count = 1;
  std::array<ArrayCode, kMaxStoredArrays> codes = {};  // of as many; the rest are fp32

  // Whoever makes a geometry has seen to it that they are few enough (core/plan/run_extent.h,
  // storage/state/detail/file_header.cpp).
  std::int32_t subgroup_count() const {
    const std::int64_t count = divide_up(parameter_count, subgroup_elements);
    CHECK_LE(count, std::numeric_limits<std::int32_t>::max());
    return static_cast<std::int32_t>(count);
  }
  std::int64_t first_element(SubgroupId subgroup) const {
    return index_of(subgroup) * subgroup_elements;
  }
  // `subgroup_elements`, and for the last subgroup what is left.
  std::int64_t element_count(SubgroupId subgroup) const;
  StoredArrays stored() const { return {variable_count, codes}; }
  ArrayCode code(std::int32_t variable) const { return codes[static_cast<std::size_t>(variable)]; }
  // One array of `element_count`, without padding.
  std::int64_t array_bytes(std::int32_t variable, std::int64_t element_count) const {
    return sluice::array_bytes(code(variable), element_count);
  }
  // One array in a slot.
  std::int64_t variable_bytes(std::int32_t variable) const {
    return round_up(array_bytes(variable, subgroup_elements), kPageBytes);
  }
  // The arrays before `variable` in a slot.
  std::int64_t bytes_before(std::int32_t variable) const;
  std::int64_t slot_bytes() const { return bytes_before(variable_count); }
  // All arrays of all subgroups, once, without padding.
  std::int64_t state_bytes() const;
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

// Which device owns which subgroup.
using DeviceMap = std::vector<DeviceId>;

// Deals the subgroups out to the devices in turns, each as evenly over the flat parameters as its
// count allows, so that a layer's gradients go to all drives at once and its parameters come back
// from all. Counts are proportional to `shares` (largest remainder, ties to the lower device; a
// share of 0 gets none). Shares are finite and >= 0, with at least one > 0.
DeviceMap make_device_map(std::int32_t subgroup_count, const std::vector<double>& shares);

class Layout {
 public:
  // Gives every subgroup a first slot on its device, in flat order.
  Layout(const Geometry& geometry, const DeviceMap& device_map);
  // As committed earlier: `current[s]` is where subgroup s lies; no two share a slot. `kept`: the
  // slots that kept commits hold; several may hold one.
  Layout(const Geometry& geometry, std::vector<SlotId> current,
         const std::vector<SlotId>& kept = {});

  const Geometry& geometry() const { return geometry_; }
  SlotId current(SubgroupId subgroup) const { return current_[index_of(subgroup)]; }
  DeviceId device(SubgroupId subgroup) const { return current(subgroup).device; }
  // The slot that take_next gave since the last commit() or abandon(), or kNoSlot.
  SlotId next(SubgroupId subgroup) const { return next_[index_of(subgroup)]; }
  std::int32_t slot_count(DeviceId device) const { return slot_count_[index_of(device)]; }

  // Where the next version of a subgroup is to be written: the lowest free slot of `device`, taken
  // until commit() or abandon(). At most one a subgroup. A device without a free slot grows by one,
  // and data_bytes(device) with it.
  SlotId take_next(SubgroupId subgroup, DeviceId device);
  // All next versions taken become current, and the slots they replace become free.
  void commit();
  // The next versions taken are forgotten and their slots become free; a device that grew for them
  // is as it was.
  void abandon();
  // With no next version taken: every device gets as many slots as it would have if this layout
  // were opened now. What subgroups that moved away have left behind goes, and devices that they
  // moved to get their two slots for each.
  void fit();

  // With no next version taken: the slots that are current are held once more, and each device
  // grows by as many as it has none to spare for.
  void keep();
  // With no next version taken: slots that were held are held once less, and devices shrink to what
  // they need.
  void release(std::span<const SlotId> kept);

  // Where one variable's array lies in a slot: offset_bytes counts from the start of the data area
  // of the device's file (which begins after its header) and is that of the array's first element;
  // size_bytes is that of `element_count` elements, rounded up to whole pages. element_count is
  // the number of elements from the array's beginning, 1 to subgroup_elements.
  Extent extent(SlotId slot, std::int32_t variable, std::int64_t element_count) const;
  // The size of the device's data area: slot_count(device) slots, used or free.
  std::int64_t data_bytes(DeviceId device) const {
    return slot_count(device) * geometry_.slot_bytes();
  }

 private:
  void find_free_slots();
  void sort_free_slots();
  void check_nothing_is_taken() const;
  void hold(std::span<const SlotId> slots);
  bool is_held(SlotId slot) const;

  Geometry geometry_;
  std::vector<SlotId> current_;
  std::vector<SlotId> next_;                           // kNoSlot where none is taken
  std::vector<std::vector<std::int32_t>> free_slots_;  // a device; sorted, highest first
  std::vector<std::int32_t> slot_count_;
  std::vector<std::int32_t> committed_slot_count_;  // slot_count_ at the last commit
  // A device, by slot: how many kept commits hold it. Slots behind its end are held by none.
  std::vector<std::vector<std::int32_t>> held_;
};

}  // namespace sluice::state
