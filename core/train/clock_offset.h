#pragma once
// How far a rank's clock is from rank 0's: machines have clocks that begin anywhere, and the
// records of all ranks are read on one time axis.
//
// Each round every rank says when it began it. What rank 0 sent before its clock showed s arrives
// here when this clock shows e, so rank 0's clock is at least s - e ahead; what this rank sent
// bounds it from the other side. The fastest message of each way is the best bound: between the two
// lies the offset, whatever the network does and whoever comes late.
//
// Thread contract: the schedule's thread; collective over all ranks.

#include <functional>

#include "base/status.h"
#include "base/units.h"

namespace sluice::train {

class Ranks;

// A time t of this rank is t + offset_ns of rank 0, give or take bound_ns.
struct ClockOffset {
  TimeNs ts = 0;  // of this rank's clock
  TimeNs offset_ns = 0;
  TimeNs bound_ns = 0;
};

// A round is one small message from each rank to each: tens of microseconds on one machine. Enough
// of them that some are undisturbed.
inline constexpr int kClockRounds = 32;

// `now_ns`: this rank's clock. Rank 0 is at 0 from itself.
Result<ClockOffset> measure_clock_offset(Ranks& ranks, const std::function<TimeNs()>& now_ns);

}  // namespace sluice::train
