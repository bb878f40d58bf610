#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "storage/state/state_layout.h"

namespace sluice::state {
namespace {

using Place = std::pair<std::int32_t, std::int32_t>;  // device, slot

Place place_of(SlotId slot) { return {index_of(slot.device), slot.index}; }

// Plain model of the contract: sets instead of free lists, and slots without an end.
class LayoutModel {
 public:
  explicit LayoutModel(const DeviceMap& map) : next_(map.size(), kNone) {
    for (const DeviceId device : map) current_.push_back(lowest_free(index_of(device)));
  }
  Place take(std::size_t subgroup, std::int32_t device) {
    return next_[subgroup] = lowest_free(device);
  }
  void commit() {
    for (std::size_t s = 0; s < current_.size(); ++s) {
      if (next_[s] == kNone) continue;
      used_.erase(current_[s]);
      current_[s] = std::exchange(next_[s], kNone);
    }
  }
  void abandon() {
    for (Place& next : next_) {
      if (next != kNone) used_.erase(next);
      next = kNone;
    }
  }
  bool is_taken(std::size_t subgroup) const { return next_[subgroup] != kNone; }
  const std::vector<Place>& current() const { return current_; }

 private:
  static constexpr Place kNone{-1, -1};
  Place lowest_free(std::int32_t device) {
    std::int32_t index = 0;
    while (used_.contains({device, index})) ++index;
    used_.insert({device, index});
    return {device, index};
  }
  std::set<Place> used_;
  std::vector<Place> current_;
  std::vector<Place> next_;
};

std::vector<std::int32_t> counts(const DeviceMap& map, std::size_t device_count) {
  std::vector<std::int32_t> result(device_count);
  for (const DeviceId device : map) ++result[static_cast<std::size_t>(index_of(device))];
  return result;
}

TEST_CASE("the last subgroup holds what is left") {
  const Geometry geometry{.parameter_count = 2500, .subgroup_elements = 1100};
  CHECK(geometry.subgroup_count() == 3);
  CHECK(geometry.element_count(SubgroupId{0}) == 1100);
  CHECK(geometry.element_count(SubgroupId{2}) == 300);
  CHECK(geometry.variable_bytes(0) == 2 * kPageBytes);  // 4400 bytes
  CHECK(geometry.slot_bytes() == 6 * kPageBytes);
}

TEST_CASE("each array of a split state has a length of its own in a slot") {
  using enum ArrayCode;
  const Geometry geometry{.parameter_count = 2 * 8192 + 100,
                          .subgroup_elements = 8192,
                          .variable_count = 4,
                          .codes = {high, low16, mean8, square8}};
  // 16,384 bytes twice, 128 groups of 65, 128 groups of 68.
  CHECK(geometry.variable_bytes(1) == 4 * kPageBytes);
  CHECK(geometry.variable_bytes(2) == 3 * kPageBytes);
  CHECK(geometry.variable_bytes(3) == 3 * kPageBytes);
  CHECK(geometry.bytes_before(0) == 0);
  CHECK(geometry.bytes_before(2) == 8 * kPageBytes);
  CHECK(geometry.bytes_before(3) == 11 * kPageBytes);
  CHECK(geometry.slot_bytes() == 14 * kPageBytes);
  // The last subgroup has two groups, of which the second is not full.
  CHECK(geometry.array_bytes(1, 100) == 200);
  CHECK(geometry.array_bytes(2, 100) == 130);
  CHECK(geometry.array_bytes(3, 100) == 136);
  CHECK(geometry.state_bytes() == 2 * (16384 + 16384 + 8320 + 8704) + 200 + 200 + 130 + 136);

  const Layout layout(geometry, make_device_map(3, {1}));
  const SlotId slot{DeviceId{0}, 2};
  const auto extent = [&](std::int32_t variable, std::int64_t element_count) {
    const Extent found = layout.extent(slot, variable, element_count);
    return std::pair(found.offset_bytes / kPageBytes, found.size_bytes / kPageBytes);
  };
  CHECK(extent(0, 8192) == std::pair<std::int64_t, std::int64_t>{28, 4});
  CHECK(extent(2, 8192) == std::pair<std::int64_t, std::int64_t>{36, 3});
  CHECK(extent(3, 8192) == std::pair<std::int64_t, std::int64_t>{39, 3});
  CHECK(extent(3, 100) == std::pair<std::int64_t, std::int64_t>{39, 1});
  CHECK(layout.data_bytes(DeviceId{0}) == 6 * geometry.slot_bytes());
}

TEST_CASE("device maps follow the shares, in contiguous runs") {
  CHECK(counts(make_device_map(10, {1, 1, 1}), 3) == std::vector{4, 3, 3});
  CHECK(counts(make_device_map(10, {0, 2, 1}), 3) == std::vector{0, 7, 3});
  CHECK(counts(make_device_map(1, {1, 3}), 2) == std::vector{0, 1});
  CHECK(counts(make_device_map(2, {1, 1, 1}), 3) == std::vector{1, 1, 0});
  CHECK(counts(make_device_map(7, {0.1, 0.2, 0.7}), 3) == std::vector{1, 1, 5});
  CHECK(make_device_map(0, {1}).empty());
}

TEST_CASE("a device's subgroups are spread evenly over the flat parameters") {
  const auto devices = [](const DeviceMap& map) {
    std::vector<int> found;
    for (const DeviceId device : map) found.push_back(index_of(device));
    return found;
  };
  CHECK(devices(make_device_map(7, {1, 1, 1})) == std::vector{0, 1, 2, 0, 1, 2, 0});
  CHECK(devices(make_device_map(6, {2, 1})) == std::vector{0, 1, 0, 0, 1, 0});
  // From the front on no device is more than one subgroup off its share.
  const std::vector<double> shares = {3, 1, 4, 1, 5};
  const DeviceMap map = make_device_map(1000, shares);
  for (std::size_t end = 1; end <= map.size(); ++end) {
    const std::vector<std::int32_t> found = counts(DeviceMap(map.begin(), map.begin() + end), 5);
    for (std::size_t d = 0; d < shares.size(); ++d) {
      REQUIRE(std::abs(found[d] - static_cast<double>(end) * shares[d] / 14) <= 1.0);
    }
  }
}

TEST_CASE("device maps stay within one subgroup of the exact share") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> shares(1 + random() % 9);
    for (double& share : shares) share = static_cast<double>(random() % 5);
    shares[random() % shares.size()] += 0.3;
    double sum = 0;
    for (const double share : shares) sum += share;
    const auto subgroup_count = static_cast<std::int32_t>(random() % 200);
    const DeviceMap map = make_device_map(subgroup_count, shares);
    REQUIRE(map.size() == static_cast<std::size_t>(subgroup_count));
    const std::vector<std::int32_t> found = counts(map, shares.size());
    for (std::size_t d = 0; d < shares.size(); ++d) {
      REQUIRE(std::abs(found[d] - subgroup_count * shares[d] / sum) < 1.0 + 1e-9);
      if (shares[d] == 0) REQUIRE(found[d] == 0);
    }
  }
}

TEST_CASE("extents of one device never overlap and lie inside its data area") {
  using enum ArrayCode;
  const Geometry geometry = GENERATE(Geometry{50'000, 1500, 3, 2},
                                     Geometry{50'000, 1536, 4, 2, {high, low8, mean8, square8}},
                                     Geometry{50'000, 1536, 3, 2, {high, low16_with_ties, fp32}});
  Layout layout(geometry, make_device_map(geometry.subgroup_count(), {2, 1}));
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s)
    layout.take_next(SubgroupId{s}, layout.device(SubgroupId{s}));
  for (std::int32_t d = 0; d < geometry.device_count; ++d) {
    std::map<std::int64_t, std::int64_t> taken;  // offset, end
    for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
      for (const SlotId slot : {layout.current(SubgroupId{s}), layout.next(SubgroupId{s})}) {
        if (index_of(slot.device) != d) continue;
        for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
          const Extent extent = layout.extent(slot, v, geometry.element_count(SubgroupId{s}));
          REQUIRE(extent.offset_bytes % kPageBytes == 0);
          REQUIRE(extent.size_bytes >=
                  geometry.array_bytes(v, geometry.element_count(SubgroupId{s})));
          taken[extent.offset_bytes] = extent.offset_bytes + extent.size_bytes;
        }
      }
    }
    std::int64_t end = 0;
    for (const auto& [offset, extent_end] : taken) {
      REQUIRE(offset >= end);
      end = extent_end;
    }
    REQUIRE(end <= layout.data_bytes(DeviceId{d}));
  }
}

TEST_CASE("a full device grows by one slot for a subgroup that moves to it") {
  const Geometry geometry{.parameter_count = 4, .subgroup_elements = 1, .device_count = 2};
  Layout layout(geometry, DeviceMap{DeviceId{0}, DeviceId{0}, DeviceId{1}, DeviceId{1}});
  CHECK(layout.slot_count(DeviceId{1}) == 4);
  layout.take_next(SubgroupId{2}, DeviceId{1});
  layout.take_next(SubgroupId{3}, DeviceId{1});
  const std::int64_t before_bytes = layout.data_bytes(DeviceId{1});
  CHECK(layout.take_next(SubgroupId{0}, DeviceId{1}) == SlotId{DeviceId{1}, 4});
  CHECK(layout.data_bytes(DeviceId{1}) == before_bytes + geometry.slot_bytes());
  layout.commit();
  CHECK(layout.device(SubgroupId{0}) == DeviceId{1});
  CHECK(layout.take_next(SubgroupId{1}, DeviceId{0}) == SlotId{DeviceId{0}, 0});  // left by 0
}

TEST_CASE("abandoning a move takes back the growth") {
  const Geometry geometry{.parameter_count = 2, .subgroup_elements = 1, .device_count = 2};
  Layout layout(geometry, make_device_map(2, {1, 0}));
  CHECK(layout.take_next(SubgroupId{1}, DeviceId{1}) == SlotId{DeviceId{1}, 0});
  CHECK(layout.slot_count(DeviceId{1}) == 1);
  layout.abandon();
  CHECK(layout.slot_count(DeviceId{1}) == 0);
  CHECK(layout.data_bytes(DeviceId{1}) == 0);
  CHECK(layout.take_next(SubgroupId{1}, DeviceId{1}) == SlotId{DeviceId{1}, 0});
  layout.commit();
  layout.abandon();
  CHECK(layout.slot_count(DeviceId{1}) == 1);
}

TEST_CASE("layouts follow a plain model through random histories, reopened at any commit") {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const Geometry geometry{.parameter_count = static_cast<std::int64_t>(1 + random() % 23),
                            .subgroup_elements = 1,
                            .device_count = static_cast<std::int32_t>(1 + random() % 4)};
    DeviceMap map;
    const auto random_device = [&] {
      return DeviceId{static_cast<std::int32_t>(random() % geometry.device_count)};
    };
    for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) map.push_back(random_device());
    Layout layout(geometry, map);
    LayoutModel model(map);

    for (int event = 0; event < 200; ++event) {
      switch (random() % 9) {
        case 0:
          layout.commit();
          model.commit();
          break;
        case 1:
          layout.abandon();
          model.abandon();
          break;
        case 2: {  // the run ends and is resumed: what was taken and not committed is gone
          std::vector<SlotId> committed;
          for (const Place& place : model.current())
            committed.push_back({DeviceId{place.first}, place.second});
          model.abandon();
          layout = Layout(geometry, committed);
          break;
        }
        case 3: {  // slots that nobody needs go, and the next are handed out as if it were reopened
          layout.abandon();
          model.abandon();
          layout.fit();
          std::vector<SlotId> committed;
          for (const Place& place : model.current())
            committed.push_back({DeviceId{place.first}, place.second});
          const Layout reopened(geometry, committed);
          for (std::int32_t d = 0; d < geometry.device_count; ++d)
            REQUIRE(layout.slot_count(DeviceId{d}) == reopened.slot_count(DeviceId{d}));
          break;
        }
        default: {
          const std::size_t subgroup = random() % map.size();
          if (model.is_taken(subgroup)) break;
          const DeviceId device = random_device();
          const SlotId slot =
              layout.take_next(SubgroupId{static_cast<std::int32_t>(subgroup)}, device);
          REQUIRE(place_of(slot) == model.take(subgroup, index_of(device)));
          REQUIRE(slot.index < layout.slot_count(device));
        }
      }
      for (std::size_t s = 0; s < map.size(); ++s)
        REQUIRE(place_of(layout.current(SubgroupId{static_cast<std::int32_t>(s)})) ==
                model.current()[s]);
    }
  }
}

}  // namespace
}  // namespace sluice::state
