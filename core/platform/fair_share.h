#pragma once
// Progressive filling: the max-min fair rates of a set of flows. All rates rise together; where a
// resource is full its flows keep their rate, and the others rise on (Bertsekas and Gallager, Data
// Networks, section 6.5.2). Knows nothing of time.
//
// A resource is what flows compete for: one direction of a full-duplex link, or the whole of a
// half-duplex one, where a byte written costs read_bandwidth / write_bandwidth bytes read.
//
// Thread contract: one thread. Allocates only while the numbers of flows and resources in use grow.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/platform/platform.h"

namespace sluice::platform {

class FairShare {
 public:
  struct Claim {
    std::span<const std::int32_t> resources;  // at least one, see `resource_of`
    Direction direction;
    double cap_bytes_per_s;  // may be infinite
  };

  explicit FairShare(std::span<const Link> links);

  std::int32_t resource_of(LinkId link, Direction direction) const;

  // One rate for each claim. The claims must be in order of their caps.
  void assign(std::span<const Claim> claims, std::vector<double>& rates);

  // Of the claims last assigned: share of the link's bandwidth in that direction.
  double utilisation(LinkId link, Direction direction) const;

 private:
  struct Resource {
    double capacity = 0;
    std::array<double, 2> cost{};        // capacity that one byte takes, by direction
    double left = 0;                     // capacity not yet given to settled claims
    std::array<std::int32_t, 2> open{};  // hops of claims not yet settled, by direction
    std::array<double, 2> given{};       // bytes a second of settled claims, by direction
    double level = 0;                    // rate at which it is full; stale when negative
    std::int32_t members_begin = 0;      // in members_
    std::int32_t members_end = 0;
  };

  static std::size_t side(Direction direction) { return static_cast<std::size_t>(direction); }
  void list_members(std::span<const Claim> claims);
  Resource& tightest();
  void settle(const Claim& claim, double rate);

  std::vector<Duplex> duplex_;
  std::vector<Resource> resources_;
  std::vector<std::int32_t> used_;     // resources with a claim
  std::vector<std::int32_t> open_;     // those of them that may have an open claim
  std::vector<std::int32_t> members_;  // claims of each used resource, one after another
};

}  // namespace sluice::platform
