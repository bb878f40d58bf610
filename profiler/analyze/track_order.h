#pragma once
// In which order tracks are drawn, in the window and on the page alike.
//
// Thread contract: free functions.

#include <cstdint>
#include <vector>

#include "profiler/analyze/run_data.h"

namespace sluice::analyze {

// The topmost track above a track; the track itself where there is none.
const TrackInfo& root_of(const RunInfo& info, const TrackInfo& track);

// The ids of all tracks: groups in the order in which data flows, each with its own track first and
// the others as operations pass their stages, then by compute unit. Ids alone would not do: a track
// is made when an operation first takes its way, which in a short run may be late. Counters stand
// last, in the same order.
std::vector<std::int64_t> drawing_order(const RunInfo& info);

}  // namespace sluice::analyze
