#pragma once
// Progressive filling: the max-min fair rates of a set of flows. All rates rise together; where a
// resource is full its flows keep their rate, and the others rise on (Bertsekas and Gallager, Data
// Networks, section 6.5.2). Knows nothing of time.
//
// A resource is what flows compete for: one direction of a full-duplex link, or the whole of a
// half-duplex one, where a byte written costs read_bandwidth / write_bandwidth bytes read. A claim
// may also pay a toll: each of its bytes takes so much of a resource that it does not cross.
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
    double cap_bytes_per_s;           // may be infinite
    std::int32_t toll_resource = -1;  // -1: no toll
    double toll = 0;                  // of that resource's capacity, which is in bytes read, a byte
  };

  explicit FairShare(std::span<const Link> links);

  std::int32_t resource_of(LinkId link, Direction direction) const;

  // One rate for each claim. The claims must be in order of their caps.
  void assign(std::span<const Claim> claims, std::vector<double>& rates);

  // The share of the link's bandwidth in that direction that the claims last assigned take.
  double utilisation(LinkId link, Direction direction) const;

 private:
  struct Resource {
    double capacity = 0;
    std::array<double, 2> cost{};        // capacity that one byte takes, by direction
    double left = 0;                     // capacity not yet given to settled claims
    std::array<std::int32_t, 2> open{};  // hops of claims not yet settled, by direction
    std::int32_t open_tolls = 0;         // claims not yet settled that pay toll here
    double open_toll = 0;                // what they take together of each byte of theirs
    std::array<double, 2> given{};       // bytes a second of settled claims, by direction
    double level = 0;                    // rate at which it is full; stale when negative
    std::int32_t members_begin = 0;      // in members_
    std::int32_t members_end = 0;

    std::int32_t open_count() const { return open[0] + open[1] + open_tolls; }
  };

  static std::size_t side(Direction direction) { return static_cast<std::size_t>(direction); }
  void list_members(std::span<const Claim> claims);
  Resource& tightest();
  void settle(const Claim& claim, double rate);
  Resource& at(std::int32_t index) { return resources_[static_cast<std::size_t>(index)]; }
  Resource& open_at(std::int32_t index);

  std::vector<Duplex> duplex_;
  std::vector<Resource> resources_;
  std::vector<std::int32_t> used_;     // resources with a claim
  std::vector<std::int32_t> open_;     // those of them that may have an open claim
  std::vector<std::int32_t> members_;  // claims of each used resource, one after another
};

}  // namespace sluice::platform
