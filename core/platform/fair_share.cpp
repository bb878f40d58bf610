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
    Resource& resource = resources_[static_cast<std::size_t>(i)];
    resource.open = {};
    resource.given = {};
  }
  used_.clear();
  std::int32_t hop_count = 0;
  for (const Claim& claim : claims) {
    for (const std::int32_t i : claim.resources) {
      Resource& resource = resources_[static_cast<std::size_t>(i)];
      if (resource.open[0] + resource.open[1] == 0) used_.push_back(i);
      ++resource.open[side(claim.direction)];
      ++hop_count;
    }
  }
  std::int32_t begin = 0;
  for (const std::int32_t i : used_) {
    Resource& resource = resources_[static_cast<std::size_t>(i)];
    resource.left = resource.capacity;
    resource.level = kStale;
    resource.members_begin = resource.members_end = begin;
    begin += resource.open[0] + resource.open[1];
  }
  members_.resize(static_cast<std::size_t>(hop_count));
  for (std::size_t c = 0; c < claims.size(); ++c) {
    for (const std::int32_t i : claims[c].resources) {
      Resource& resource = resources_[static_cast<std::size_t>(i)];
      members_[static_cast<std::size_t>(resource.members_end++)] = static_cast<std::int32_t>(c);
    }
  }
  open_ = used_;
}

// The resource that is full first while the open claims rise. Forgets the resources that have none.
FairShare::Resource& FairShare::tightest() {
  Resource* lowest = nullptr;
  for (std::size_t i = 0; i < open_.size();) {
    Resource& resource = resources_[static_cast<std::size_t>(open_[i])];
    if (resource.open[0] + resource.open[1] == 0) {
      open_[i] = open_.back();
      open_.pop_back();
      continue;
    }
    if (resource.level < 0) {
      resource.level = resource.left /
                       (resource.open[0] * resource.cost[0] + resource.open[1] * resource.cost[1]);
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
    Resource& resource = resources_[static_cast<std::size_t>(i)];
    resource.left = std::max(0.0, resource.left - rate * resource.cost[direction]);
    resource.given[direction] += rate;
    --resource.open[direction];
    resource.level = kStale;
  }
}

double FairShare::utilisation(LinkId link, Direction direction) const {
  const Resource& resource = resources_[static_cast<std::size_t>(resource_of(link, direction))];
  const std::size_t i = side(direction);
  return resource.given[i] * resource.cost[i] / resource.capacity;
}

}  // namespace sluice::platform
