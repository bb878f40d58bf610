#pragma once
// How busy the tracks of a group are over time: what stands in the row of a closed group.
//
// Thread contract: free functions on plain data.

#include <cstdint>
#include <span>
#include <vector>

#include "gui/data/timeline_window.h"

namespace sluice::gui {

struct BusyColumn {
  float busy_tracks = 0;      // mean number of the tracks that were busy
  std::int32_t name_id = -1;  // what took most of it; -1: nothing
};

// `count` equal columns from `begin` to `end`. A track is busy where any of its spans is; of a bin
// of the levels of detail, its share is spread over the whole bin.
std::vector<BusyColumn> busy_columns(const TimelineWindow& window,
                                     std::span<const std::int64_t> track_ids, TimeNs begin,
                                     TimeNs end, std::size_t count);

}  // namespace sluice::gui
