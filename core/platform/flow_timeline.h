#pragma once
// The flows of a network as time goes by: they wait for their latency, join, share, finish. A value
// without tie to its network, so that the network can copy it and look ahead.
//
// Changes happen on whole nanoseconds. A flow's bytes are brought up to date only when its rate
// changes, so what rounding costs does not grow with the number of events around it.
//
// Thread contract: one thread.

#include <cstdint>
#include <limits>
#include <vector>

#include "core/platform/fair_share.h"

namespace sluice::platform {

enum class FlowId : std::int64_t {};

class FlowTimeline {
 public:
  static constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();
  // An end that would come after it comes then.
  static constexpr TimeNs kLatest = kNever - 1;

  struct Joining {
    TimeNs join_ns;
    FlowId flow;
    std::int32_t slot;  // the owner's, handed back in Finished
    double size_bytes;
    FairShare::Claim claim;  // no resources: done when it joins
  };
  struct Finished {
    TimeNs at_ns;
    FlowId flow;
    std::int32_t slot;
  };

  void add(const Joining& joining);
  // The time of the next join or finish; kNever when there is none.
  TimeNs next_event_ns() const;
  // True if that event is certain to be a finish.
  bool next_event_finishes() const;
  // Carries out all that happens at `at_ns`, which must be next_event_ns(). Appends what finished,
  // in order of flow ids.
  void step(TimeNs at_ns, FairShare& fair_share, std::vector<Finished>& finished);

  std::size_t flow_count() const { return moving_.size() + waiting_.size(); }
  double rate_bytes_per_s(FlowId flow) const;  // 0 unless its bytes are moving

 private:
  struct Moving {
    FlowId flow;
    std::int32_t slot;
    double left_bytes;  // at since_ns
    double rate_bytes_per_s;
    TimeNs since_ns;
    TimeNs finish_ns;
  };

  void join(const Joining& joining);
  void remove_finished(TimeNs at_ns, std::vector<Finished>& finished);
  void share(TimeNs at_ns, FairShare& fair_share);

  std::vector<Joining> waiting_;          // a heap, the next to join in front
  std::vector<FairShare::Claim> claims_;  // of moving_, in order of caps
  std::vector<Moving> moving_;
  std::vector<double> rates_;
  TimeNs next_finish_ns_ = kNever;
};

}  // namespace sluice::platform
