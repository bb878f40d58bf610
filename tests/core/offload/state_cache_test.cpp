// Which subgroups stay in memory: as many as there is room for, spread evenly.

#include "core/offload/state_cache.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace sluice;
using offload::KeptSubgroups;

namespace {

constexpr std::int64_t kSubgroupBytes = 3 * 4096;

// 24 subgroups of a page for each variable.
state::Geometry geometry_on(std::int32_t devices) { return {24 * 1000, 1000, 3, devices}; }

KeptSubgroups choose(offload::Method method, std::int64_t room, std::vector<double> shares) {
  const state::Geometry geometry = geometry_on(static_cast<std::int32_t>(shares.size()));
  offload::OffloadOptions options;
  options.method = method;
  options.state_cache_bytes = room * kSubgroupBytes + kSubgroupBytes / 2;
  return offload::choose_kept(options, geometry,
                              state::make_device_map(geometry.subgroup_count(), shares));
}

std::vector<std::int64_t> counts(const KeptSubgroups& kept) {
  std::vector<std::int64_t> counts;
  for (const auto& of_device : kept) counts.push_back(std::ssize(of_device));
  return counts;
}

KeptSubgroups kept_on_one_device(const std::vector<SubgroupId>& subgroups) {
  KeptSubgroups kept(1);
  kept[DeviceId{0}] = subgroups;
  return kept;
}

}  // namespace

TEST_CASE("the host's memory is shared out to all devices by what they update") {
  using Counts = std::vector<std::int64_t>;
  const auto host = offload::Method::host;
  CHECK(offload::kept_subgroup_bytes({}, geometry_on(1)) == kSubgroupBytes);
  CHECK(counts(choose(host, 0, {1, 1})) == Counts{0, 0});
  CHECK(counts(choose(host, 8, {1, 1, 1, 1})) == Counts{2, 2, 2, 2});
  CHECK(counts(choose(host, 12, {2, 1, 1})) == Counts{6, 3, 3});
  CHECK(counts(choose(host, 100, {3, 1, 0})) == Counts{18, 6, 0});
}

TEST_CASE("each device's memory holds subgroups of its own") {
  using Counts = std::vector<std::int64_t>;
  const auto csd = offload::Method::csd;
  CHECK(counts(choose(csd, 5, {1, 1, 1, 1})) == Counts{5, 5, 5, 5});
  CHECK(counts(choose(csd, 7, {3, 1, 0})) == Counts{7, 6, 0});
}

TEST_CASE("what stays is spread evenly over a device's order") {
  for (std::int64_t room = 1; room <= 24; ++room) {
    const KeptSubgroups kept = choose(offload::Method::csd, room, {1});
    REQUIRE(std::ssize(kept.front()) == room);
    CHECK(std::ranges::is_sorted(kept.front()));
    for (std::size_t i = 1; i < kept.front().size(); ++i) {
      const std::int64_t apart = index_of(kept.front()[i]) - index_of(kept.front()[i - 1]);
      CHECK(apart >= 24 / room);
      CHECK(apart <= (24 + room - 1) / room);
    }
  }
}

TEST_CASE("what is in memory, and what is there alone") {
  const state::Geometry geometry = geometry_on(1);
  offload::StateCache cache(kept_on_one_device({SubgroupId{2}, SubgroupId{5}}), {}, geometry);
  CHECK(cache.keeps(SubgroupId{5}));
  CHECK(cache.place_of(SubgroupId{5}) == 1);
  CHECK_FALSE(cache.keeps(SubgroupId{4}));
  for (std::int32_t v = 0; v < 3; ++v) {
    CHECK_FALSE(cache.has(SubgroupId{5}, v));
    for (const SubgroupId subgroup : {SubgroupId{5}, SubgroupId{4}}) cache.on_read(subgroup, v);
    CHECK(cache.has(SubgroupId{5}, v));
  }
  CHECK_FALSE(cache.has(SubgroupId{4}, 0));  // gone with its buffer set
  CHECK_FALSE(cache.is_unwritten(SubgroupId{5}, 2));
  for (const SubgroupId subgroup : {SubgroupId{5}, SubgroupId{4}}) {
    cache.on_updated(subgroup, false);
  }
  for (std::int32_t v = 0; v < 3; ++v) {
    CHECK(cache.is_unwritten(SubgroupId{5}, v));
    CHECK_FALSE(cache.is_unwritten(SubgroupId{4}, v));
  }
  cache.on_written(SubgroupId{5});
  CHECK_FALSE(cache.is_unwritten(SubgroupId{5}, 2));
}

TEST_CASE("a copy in memory stays of every subgroup, and takes no room of what is kept") {
  using enum ArrayCode;
  const state::Geometry geometry{24 * 1024, 1024, 4, 1, {high, low16, mean8, square8}};
  offload::OffloadOptions options;
  options.method = offload::Method::host;
  options.state_format.kind = StateFormatKind::compact;
  REQUIRE(options.has_copy_in_memory());
  CHECK(offload::kept_subgroup_bytes(options, geometry) == 3 * 4096);  // 2048, 1040, 1088 bytes
  options.parameters = offload::ParameterTier::storage;
  CHECK(offload::kept_subgroup_bytes(options, geometry) == 4 * 4096);
  options.parameters = offload::ParameterTier::memory;

  constexpr SubgroupId kKept{5};
  constexpr SubgroupId kOther{4};
  offload::StateCache cache(kept_on_one_device({kKept}), options, geometry);
  CHECK(cache.stays(kOther, 0));
  CHECK_FALSE(cache.stays(kOther, 1));
  CHECK(cache.stays(kKept, 1));
  CHECK(cache.has(kOther, 0));  // where it is read from
  CHECK_FALSE(cache.has(kOther, 1));
  for (const SubgroupId subgroup : {kKept, kOther}) {
    for (std::int32_t v = 1; v < 4; ++v) cache.on_read(subgroup, v);
    CHECK(cache.has(subgroup, 3) == (subgroup == kKept));
  }

  // A step that does not commit writes neither the copy nor what is kept.
  for (const SubgroupId subgroup : {kKept, kOther}) cache.on_updated(subgroup, false);
  for (std::int32_t v = 0; v < 4; ++v) {
    CHECK(cache.is_unwritten(kKept, v));
    CHECK(cache.is_unwritten(kOther, v) == (v == 0));
  }
  cache.on_written(kOther);
  CHECK_FALSE(cache.is_unwritten(kOther, 0));
  cache.on_updated(kKept, true);
  CHECK_FALSE(cache.is_unwritten(kKept, 0));
}

TEST_CASE("a copy that was refuted is read again, or loaded") {
  using enum ArrayCode;
  const state::Geometry geometry{24 * 1024, 1024, 4, 1, {high, low16, mean8, square8}};
  offload::OffloadOptions options;
  options.method = offload::Method::host;
  options.state_format.kind = StateFormatKind::compact;
  offload::StateCache cache(kept_on_one_device({}), options, geometry);
  constexpr SubgroupId kSubgroup{7};
  cache.on_updated(kSubgroup, false);
  cache.forget(kSubgroup);
  CHECK_FALSE(cache.has(kSubgroup, 0));
  CHECK_FALSE(cache.is_unwritten(kSubgroup, 0));
  cache.on_read(kSubgroup, 0);  // into a buffer: the update brings it to its place
  CHECK_FALSE(cache.has(kSubgroup, 0));
  cache.on_updated(kSubgroup, true);
  CHECK(cache.has(kSubgroup, 0));
  cache.forget(kSubgroup);
  cache.on_loaded(kSubgroup);
  CHECK(cache.has(kSubgroup, 0));
  CHECK_FALSE(cache.is_unwritten(kSubgroup, 0));
}

TEST_CASE("state whose copy is on a drive or in a device's memory has none that stays") {
  using enum ArrayCode;
  const state::Geometry geometry{24 * 1024, 1024, 4, 1, {high, low16, mean8, square8}};
  offload::OffloadOptions on_device;
  on_device.state_format.kind = StateFormatKind::compact;
  on_device.method = offload::Method::csd;
  offload::OffloadOptions on_drives = on_device;
  on_drives.method = offload::Method::host;
  on_drives.parameters = offload::ParameterTier::storage;
  for (const offload::OffloadOptions& options : {on_device, on_drives}) {
    offload::StateCache cache(kept_on_one_device({}), options, geometry);
    CHECK_FALSE(cache.stays(SubgroupId{3}, 0));
    CHECK_FALSE(cache.has(SubgroupId{3}, 0));
    cache.on_loaded(SubgroupId{3});
    CHECK_FALSE(cache.has(SubgroupId{3}, 0));
    cache.on_updated(SubgroupId{3}, false);
    CHECK_FALSE(cache.is_unwritten(SubgroupId{3}, 0));
  }
}
