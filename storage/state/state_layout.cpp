#include "storage/state/state_layout.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace sluice::state {
namespace {

void check_geometry_makes_sense(const Geometry& geometry) {
  CHECK_GT(geometry.parameter_count, 0);
  CHECK_GT(geometry.subgroup_elements, 0);
  CHECK_GT(geometry.variable_count, 0);
  CHECK_GT(geometry.device_count, 0);
}

// How many subgroups each device gets.
std::vector<std::int32_t> apportion(std::int32_t subgroup_count,
                                    const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  CHECK(std::isfinite(sum) && sum > 0);
  std::vector<std::int32_t> counts(shares.size());
  std::vector<double> remainders(shares.size());
  std::int32_t left = subgroup_count;
  for (std::size_t device = 0; device < shares.size(); ++device) {
    CHECK_GE(shares[device], 0);
    const double quota = subgroup_count * (shares[device] / sum);
    counts[device] = std::min(left, static_cast<std::int32_t>(quota));
    remainders[device] = shares[device] > 0 ? quota - counts[device] : -1;
    left -= counts[device];
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  // Fewer are left than there are devices with a remainder, so a share of 0 never comes up.
  for (std::size_t i = 0; left > 0; ++i, --left) ++counts[order[i]];
  return counts;
}

}  // namespace

std::int64_t Geometry::element_count(SubgroupId subgroup) const {
  return std::min(subgroup_elements, parameter_count - first_element(subgroup));
}

std::int64_t Geometry::bytes_before(std::int32_t variable) const {
  std::int64_t size_bytes = 0;
  for (std::int32_t v = 0; v < variable; ++v) size_bytes += variable_bytes(v);
  return size_bytes;
}

std::int64_t Geometry::state_bytes() const {
  const std::int64_t whole_count = parameter_count / subgroup_elements;
  std::int64_t size_bytes = 0;
  for (std::int32_t v = 0; v < variable_count; ++v) {
    size_bytes += whole_count * array_bytes(v, subgroup_elements) +
                  array_bytes(v, parameter_count - whole_count * subgroup_elements);
  }
  return size_bytes;
}

DeviceMap make_device_map(std::int32_t subgroup_count, const std::vector<double>& shares) {
  CHECK_GE(subgroup_count, 0);
  const std::vector<std::int32_t> counts = apportion(subgroup_count, shares);
  // The j-th subgroup of a device stands at (2j + 1) / (2 count) of the way.
  struct Place {
    std::int64_t numerator;
    std::int64_t count;
    std::int32_t device;
  };
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(subgroup_count));
  for (std::size_t device = 0; device < counts.size(); ++device) {
    for (std::int32_t j = 0; j < counts[device]; ++j) {
      places.push_back(
          {2 * std::int64_t{j} + 1, counts[device], static_cast<std::int32_t>(device)});
    }
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.numerator * b.count < b.numerator * a.count;
  });
  DeviceMap map;
  map.reserve(places.size());
  for (const Place& place : places) map.push_back(DeviceId{place.device});
  return map;
}

Layout::Layout(const Geometry& geometry, const DeviceMap& device_map) : geometry_(geometry) {
  check_geometry_makes_sense(geometry);
  CHECK_EQ(device_map.size(), static_cast<std::size_t>(geometry.subgroup_count()));
  std::vector<std::int32_t> used(static_cast<std::size_t>(geometry.device_count));
  current_.reserve(device_map.size());
  for (const DeviceId device : device_map) {
    CHECK(index_of(device) >= 0 && index_of(device) < geometry.device_count);
    current_.push_back({device, used[index_of(device)]++});
  }
  held_.resize(used.size());
  find_free_slots();
}

Layout::Layout(const Geometry& geometry, std::vector<SlotId> current,
               const std::vector<SlotId>& kept)
    : geometry_(geometry), current_(std::move(current)) {
  check_geometry_makes_sense(geometry);
  CHECK_EQ(current_.size(), static_cast<std::size_t>(geometry.subgroup_count()));
  held_.resize(static_cast<std::size_t>(geometry.device_count));
  hold(kept);
  find_free_slots();
}

void Layout::hold(std::span<const SlotId> slots) {
  for (const SlotId slot : slots) {
    CHECK(index_of(slot.device) >= 0 && index_of(slot.device) < geometry_.device_count);
    CHECK_GE(slot.index, 0);
    std::vector<std::int32_t>& held = held_[index_of(slot.device)];
    if (std::ssize(held) <= slot.index) held.resize(static_cast<std::size_t>(slot.index) + 1);
    held[static_cast<std::size_t>(slot.index)] += 1;
  }
}

bool Layout::is_held(SlotId slot) const {
  const std::vector<std::int32_t>& held = held_[index_of(slot.device)];
  return slot.index < std::ssize(held) && held[static_cast<std::size_t>(slot.index)] > 0;
}

// Slot counts and free slots from `current_` and what is held: two slots a subgroup and one for
// each that is held, and as many as the highest one in use needs.
void Layout::find_free_slots() {
  const auto device_count = static_cast<std::size_t>(geometry_.device_count);
  next_.assign(current_.size(), kNoSlot);
  slot_count_.assign(device_count, 0);
  free_slots_.assign(device_count, {});
  std::vector<std::int32_t> end(device_count);
  for (std::size_t device = 0; device < device_count; ++device) {
    for (std::size_t slot = 0; slot < held_[device].size(); ++slot) {
      if (held_[device][slot] == 0) continue;
      slot_count_[device] += 1;
      end[device] = static_cast<std::int32_t>(slot) + 1;
    }
  }
  for (const SlotId slot : current_) {
    CHECK(index_of(slot.device) >= 0 && index_of(slot.device) < geometry_.device_count);
    CHECK_GE(slot.index, 0);
    slot_count_[index_of(slot.device)] += 2;
    end[index_of(slot.device)] = std::max(end[index_of(slot.device)], slot.index + 1);
  }
  std::vector<std::vector<bool>> used(device_count);
  for (std::size_t device = 0; device < device_count; ++device) {
    slot_count_[device] = std::max(slot_count_[device], end[device]);
    used[device].resize(static_cast<std::size_t>(slot_count_[device]));
  }
  for (const SlotId slot : current_) {
    CHECK(!used[index_of(slot.device)][slot.index]);  // two subgroups in one slot
    used[index_of(slot.device)][slot.index] = true;
  }
  for (std::size_t device = 0; device < device_count; ++device) {
    for (std::size_t slot = 0; slot < held_[device].size(); ++slot)
      if (held_[device][slot] > 0) used[device][slot] = true;
    // Room for every slot, so that a step that frees slots does not allocate.
    free_slots_[device].reserve(used[device].size());
    for (std::int32_t index = slot_count_[device] - 1; index >= 0; --index)
      if (!used[device][index]) free_slots_[device].push_back(index);
  }
  committed_slot_count_ = slot_count_;
}

void Layout::check_nothing_is_taken() const {
  for (const SlotId next : next_) CHECK_EQ(next.index, kNoSlot.index);
}

void Layout::fit() {
  check_nothing_is_taken();
  find_free_slots();
}

void Layout::keep() {
  check_nothing_is_taken();
  hold(current_);
  find_free_slots();
}

void Layout::release(std::span<const SlotId> kept) {
  check_nothing_is_taken();
  for (const SlotId slot : kept) {
    CHECK(is_held(slot));
    held_[index_of(slot.device)][static_cast<std::size_t>(slot.index)] -= 1;
  }
  find_free_slots();
}

SlotId Layout::take_next(SubgroupId subgroup, DeviceId device) {
  CHECK(index_of(subgroup) >= 0 && index_of(subgroup) < geometry_.subgroup_count());
  CHECK(index_of(device) >= 0 && index_of(device) < geometry_.device_count);
  SlotId& next = next_[index_of(subgroup)];
  CHECK_EQ(next.index, kNoSlot.index);  // taken already
  std::vector<std::int32_t>& free_slots = free_slots_[index_of(device)];
  if (free_slots.empty()) {
    next = {device, slot_count_[index_of(device)]++};
  } else {
    next = {device, free_slots.back()};
    free_slots.pop_back();
  }
  return next;
}

void Layout::commit() {
  for (std::size_t subgroup = 0; subgroup < current_.size(); ++subgroup) {
    if (next_[subgroup] == kNoSlot) continue;
    if (!is_held(current_[subgroup])) {
      free_slots_[index_of(current_[subgroup].device)].push_back(current_[subgroup].index);
    }
    current_[subgroup] = std::exchange(next_[subgroup], kNoSlot);
  }
  committed_slot_count_ = slot_count_;
  sort_free_slots();
}

void Layout::abandon() {
  for (SlotId& next : next_) {
    if (next == kNoSlot) continue;
    if (next.index < committed_slot_count_[index_of(next.device)])
      free_slots_[index_of(next.device)].push_back(next.index);
    next = kNoSlot;
  }
  slot_count_ = committed_slot_count_;
  sort_free_slots();
}

void Layout::sort_free_slots() {
  for (std::vector<std::int32_t>& free_slots : free_slots_)
    std::sort(free_slots.begin(), free_slots.end(), std::greater<>());
}

Extent Layout::extent(SlotId slot, std::int32_t variable, std::int64_t element_count) const {
  CHECK(index_of(slot.device) >= 0 && index_of(slot.device) < geometry_.device_count);
  CHECK(slot.index >= 0 && slot.index < slot_count(slot.device));
  CHECK(variable >= 0 && variable < geometry_.variable_count);
  CHECK(element_count > 0 && element_count <= geometry_.subgroup_elements);
  return {slot.index * geometry_.slot_bytes() + geometry_.bytes_before(variable),
          round_up(geometry_.array_bytes(variable, element_count), kPageBytes)};
}

}  // namespace sluice::state
