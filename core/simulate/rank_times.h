#pragma once
// How a rank's step divides: computing; waiting for other ranks, while nothing else goes on; and
// what is left, which is the update and whatever drives and host do where nothing hides it. As
// `sluice show` divides a recorded step of several ranks (docs/ranks.md).
//
// Thread contract: the schedule's thread.

#include <vector>

#include "core/runtime/operation.h"
#include "core/simulate/sharded_run.h"
#include "core/simulate/simulated_step.h"

namespace sluice::simulate {

class RankTimes final : public runtime::OperationSink {
 public:
  void on_submit(const runtime::OperationState& /*state*/) override {}
  void on_finish(const runtime::OperationState& state) override;

  // The mean of the steps that were shown.
  ShardedStep mean_step(const SimulatedStep& shown) const;

 private:
  enum class What : std::uint8_t { computing, between_ranks, other };
  struct Interval {
    TimeNs start_ns;
    TimeNs end_ns;
    What what;
  };
  static What what_of(stages::Stage stage);
  struct Sums {
    TimeNs computing_ns = 0;
    TimeNs exposed_ns = 0;
  };
  Sums sums_within(TimeNs from_ns, TimeNs to_ns) const;

  std::vector<Interval> intervals_;
  // A step that is not shown may follow, so the time of the end stands beside each.
  struct Ended {
    TimeNs end_ns;
    stages::Stage stage;
    std::int64_t size_bytes;
    TimeNs dur_ns;
  };
  std::vector<Ended> ended_;
};

}  // namespace sluice::simulate
