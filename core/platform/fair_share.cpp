#include "core/platform/fair_share.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace sluice::platform {
namespace {

constexpr double kStale = -1;
constexpr double kOpen = -1;  // in `rates`: not settled yet

}  // namespace

FairShare::FairShare(std::span<const Link> links) : resources_(links.size() * 2) {
  duplex_.reserve(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const double read = links[i].read_bytes_per_s;
    const double write = links[i].write_bytes_per_s;
    CHECK_GT(read, 0);
    CHECK_GT(write, 0);
    duplex_.push_back(links[i].duplex);
    const bool half = links[i].duplex == Duplex::half;
    resources_[2 * i] = {.capacity = read, .cost = {1, half ? read / write : 0}};
    resources_[2 * i + 1] = {.capacity = write, .cost = {0, 1}};
  }
}

std::int32_t FairShare::resource_of(LinkId link, Direction direction) const {
  const std::int32_t index = index_of(link);
  CHECK_GE(index, 0);
  CHECK_LT(index, static_cast<std::int32_t>(duplex_.size()));
  const bool second =
      direction == Direction::write && duplex_[static_cast<std::size_t>(index)] == Duplex::full;
  return 2 * index + (second ? 1 : 0);
}

void FairShare::assign(std::span<const Claim> claims, std::vector<double>& rates) {
  list_members(claims);
  rates.assign(claims.size(), kOpen);
  std::size_t settled_count = 0;
  std::size_t next_capped = 0;
  const auto settle_one = [&](std::size_t i, double rate) {
    rates[i] = rate;
    settle(claims[i], rate);
    ++settled_count;
  };
  while (settled_count < claims.size()) {
    const Resource& full = tightest();
    const double level = full.level;
    // Caps below the level come first. Settling one only raises the levels of its resources, so all
    // of them may go before the levels are looked at again.
    const std::size_t settled_before = settled_count;
    for (; next_capped < claims.size() && claims[next_capped].cap_bytes_per_s <= level;
         ++next_capped) {
      if (rates[next_capped] == kOpen) settle_one(next_capped, claims[next_capped].cap_bytes_per_s);
    }
    if (settled_count > settled_before) continue;
    for (std::int32_t i = full.members_begin; i < full.members_end; ++i) {
      const auto member = static_cast<std::size_t>(members_[static_cast<std::size_t>(i)]);
      if (rates[member] == kOpen) settle_one(member, level);
    }
  }
}

void FairShare::list_members(std::span<const Claim> claims) {
  for (const std::int32_t i : used_) {
    Resource& resource = at(i);
    resource.open = {};
    resource.given = {};
    resource.open_tolls = 0;
    resource.open_toll = 0;
  }
  used_.clear();
  std::int32_t hop_count = 0;
  for (const Claim& claim : claims) {
    for (const std::int32_t i : claim.resources) {
      ++open_at(i).open[side(claim.direction)];
      ++hop_count;
    }
    if (claim.toll_resource < 0) continue;
    Resource& resource = open_at(claim.toll_resource);
    ++resource.open_tolls;
    resource.open_toll += claim.toll;
    ++hop_count;
  }
  std::int32_t begin = 0;
  for (const std::int32_t i : used_) {
    Resource& resource = at(i);
    resource.left = resource.capacity;
    resource.level = kStale;
    resource.members_begin = resource.members_end = begin;
    begin += resource.open_count();
  }
  members_.resize(static_cast<std::size_t>(hop_count));
  for (std::size_t c = 0; c < claims.size(); ++c) {
    const auto add_to = [&](Resource& resource) {
      members_[static_cast<std::size_t>(resource.members_end++)] = static_cast<std::int32_t>(c);
    };
    for (const std::int32_t i : claims[c].resources) add_to(at(i));
    if (claims[c].toll_resource >= 0) add_to(at(claims[c].toll_resource));
  }
  open_ = used_;
}

FairShare::Resource& FairShare::open_at(std::int32_t index) {
  Resource& resource = at(index);
  if (resource.open_count() == 0) used_.push_back(index);
  return resource;
}

// The resource that is full first while the open claims rise. Forgets the resources that have none.
FairShare::Resource& FairShare::tightest() {
  Resource* lowest = nullptr;
  for (std::size_t i = 0; i < open_.size();) {
    Resource& resource = at(open_[i]);
    if (resource.open_count() == 0) {
      open_[i] = open_.back();
      open_.pop_back();
      continue;
    }
    if (resource.level < 0) {
      resource.level = resource.left / (resource.open[0] * resource.cost[0] +
                                        resource.open[1] * resource.cost[1] + resource.open_toll);
    }
    if (lowest == nullptr || resource.level < lowest->level) lowest = &resource;
    ++i;
  }
  CHECK(lowest != nullptr);
  return *lowest;
}

void FairShare::settle(const Claim& claim, double rate) {
  const std::size_t direction = side(claim.direction);
  for (const std::int32_t i : claim.resources) {
    Resource& resource = at(i);
    resource.left = std::max(0.0, resource.left - rate * resource.cost[direction]);
    resource.given[direction] += rate;
    --resource.open[direction];
    resource.level = kStale;
  }
  if (claim.toll_resource < 0) return;
  Resource& resource = at(claim.toll_resource);
  resource.left = std::max(0.0, resource.left - rate * claim.toll);
  resource.given[side(Direction::read)] += rate * claim.toll;
  resource.open_toll = --resource.open_tolls > 0 ? resource.open_toll - claim.toll : 0;
  resource.level = kStale;
}

double FairShare::utilisation(LinkId link, Direction direction) const {
  const Resource& resource = resources_[static_cast<std::size_t>(resource_of(link, direction))];
  const std::size_t i = side(direction);
  return resource.given[i] * resource.cost[i] / resource.capacity;
}

}  // namespace sluice::platform
