#pragma once
// How long transfers take when they share links: max-min fair over whole routes. Each operation
// ("flow") crosses some links in a direction; rates rise together until a link is full, its flows
// are frozen, and the rest goes on (progressive filling; Bertsekas and Gallager, Data Networks,
// section 6.5.2). Rates are computed anew when a flow joins or leaves.
//
// Used by the emulated and the simulated clock alike, so that their costs are one piece of code
// (D1). Thread contract: one thread. Deterministic: the same calls give the same times.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id_vector.h"
#include "core/platform/burst_credit.h"
#include "core/platform/fair_share.h"
#include "core/platform/flow_timeline.h"
#include "core/platform/platform.h"

namespace sluice::platform {

struct FlowRequest {
  std::span<const LinkId> route = {};  // may be empty: completes after `extra_latency_ns`
  Direction direction = Direction::read;
  std::int64_t size_bytes = 0;
  std::int64_t chunk_bytes =
      0;  // size of the requests that move it, for the links' chunk curves; 0 = no cap
  TimeNs extra_latency_ns = 0;  // added to the links' latencies
  TimeNs waited_ns = 0;         // of the latencies, what went by before
  LinkId toll_link{-1};  // if not -1, each byte takes `toll` bytes of this one's reading, too
  double toll = 0;
};

class FlowNetwork {
 public:
  static constexpr TimeNs kNever = FlowTimeline::kNever;
  static constexpr TimeNs kLatest = FlowTimeline::kLatest;

  explicit FlowNetwork(std::span<const Link> links);
  FlowNetwork(FlowNetwork&&) = default;  // no copies: the timeline points into slots_
  FlowNetwork& operator=(FlowNetwork&&) = default;

  // `now_ns` never goes back over all calls. Ids are given in the order of the calls and never
  // again.
  FlowId start(const FlowRequest& request, TimeNs now_ns);
  // Time of the next completion, if nothing is started before; kNever when idle. Exact also where
  // flows that are now in their latency will join before it.
  TimeNs next_completion_ns() const;
  // Moves time forward and appends the flows that completed at or before `now_ns`, in order of
  // completion (ties: by id), each with its exact completion time: the first whole nanosecond at
  // which its last byte has arrived. It holds its share of the links until then.
  struct Completion {
    FlowId flow;
    TimeNs at_ns;
  };
  void advance(TimeNs now_ns, std::vector<Completion>& completed);

  std::size_t active_count() const;            // started, and not yet handed out by advance()
  double rate_bytes_per_s(FlowId flow) const;  // now; 0 while in latency and when complete
  double utilisation(LinkId link,
                     Direction direction) const;  // share of that direction's bandwidth in use now

 private:
  void run_until(TimeNs now_ns);
  void take_ahead();
  void forget_ahead();
  std::int32_t acquire_slot();
  void on_finished(const FlowTimeline::Finished& finished);

  IdVector<LinkId, Link> links_;
  FairShare fair_share_;
  FlowTimeline timeline_;
  BurstCredit burst_credit_;
  struct Slot {
    std::vector<LinkId> route;
    Direction direction = Direction::read;
    std::vector<std::int32_t> resources;  // on the route
  };
  std::vector<Slot> slots_;  // of each flow; the timeline points into them
  std::vector<std::int32_t> free_slots_;
  std::vector<FlowTimeline::Finished> finished_;  // not yet handed out
  std::int64_t next_flow_ = 0;
  TimeNs now_ns_ = std::numeric_limits<TimeNs>::min();

  // For looking ahead: copies that keep their memory, at the next completion. If nothing is started
  // before it they are what comes, and are taken over instead of computed again.
  struct Ahead {
    bool is_valid = false;
    FairShare fair_share;
    FlowTimeline timeline;
    std::vector<FlowTimeline::Finished> finished;
  };
  mutable Ahead ahead_;
  mutable std::optional<TimeNs> next_completion_ns_;
};

}  // namespace sluice::platform
