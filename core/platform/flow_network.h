#pragma once
// How long transfers take when they share links: max-min fair over whole routes. Each operation
// ("flow") crosses some links in a direction; rates rise together until a link is full, its flows
// are frozen, and the rest goes on (progressive filling; Bertsekas and Gallager, Data Networks,
// section 6.5.2). Rates are computed anew when a flow joins or leaves.
//
// Used by the emulated and the simulated clock alike, so that their costs are one piece of code
// (D1). Thread contract: one thread. Deterministic: the same calls give the same times.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/platform/platform.h"

namespace sluice::platform {

enum class FlowId : std::int64_t {};

struct FlowRequest {
  std::span<const LinkId> route;  // may be empty: completes after `extra_latency_ns`
  Direction direction = Direction::read;
  std::int64_t size_bytes = 0;
  std::int64_t chunk_bytes =
      0;  // size of the requests that move it, for the links' chunk curves; 0 = no cap
  TimeNs extra_latency_ns = 0;  // added to the links' latencies
};

class FlowNetwork {
 public:
  static constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();

  explicit FlowNetwork(std::span<const Link> links);

  // `now_ns` never goes back over all calls.
  FlowId start(const FlowRequest& request, TimeNs now_ns);
  // Time of the next completion, if nothing joins before; kNever when idle.
  TimeNs next_completion_ns() const;
  // Moves time forward and appends the flows that completed at or before `now_ns`, in order of
  // completion (ties: by id), each with its exact completion time.
  struct Completion {
    FlowId flow;
    TimeNs at_ns;
  };
  void advance(TimeNs now_ns, std::vector<Completion>& completed);

  std::size_t active_count() const;
  double rate_bytes_per_s(FlowId flow) const;  // now; 0 while in latency
  double utilisation(LinkId link,
                     Direction direction) const;  // share of that direction's bandwidth in use now

 private:
  // (implementation's own)
};

}  // namespace sluice::platform
