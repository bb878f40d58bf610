#pragma once
// The cost of the collector's passes, as a share of one processor.
//
// Thread contract: one thread, the one that passes.

#include <optional>

#include "base/units.h"

namespace sluice::collect {

class CostWatch {
 public:
  explicit CostWatch(TimeNs now_ts) : looked_ts_(now_ts) {}

  // Processor time of the calling thread, around a pass.
  void begin_pass();
  void end_pass();

  // The share since the last look; none: that was less than `dur_min` ago.
  std::optional<double> look(TimeNs now_ts, TimeNs dur_min);
  // This look's share and those of the looks before were above `share_max`, so often in a row that
  // it is no moment in which a drive or the machine was busy.
  bool is_too_much(double share, double share_max);
  void forget() { over_count_ = 0; }

 private:
  TimeNs begin_cpu_ns_ = 0;  // of the pass at hand
  TimeNs cost_ns_ = 0;       // since looked_ts_
  TimeNs looked_ts_;
  int over_count_ = 0;  // looks in a row in which that was too much
};

}  // namespace sluice::collect
