#pragma once
// The rows of the timeline: groups of tracks, tracks, counters, each with its place from the top.
//
// Thread contract: the frame thread.

#include <set>
#include <string>
#include <vector>

#include "gui/data/run_feed.h"

namespace sluice::gui {

struct TimelineRow {
  enum class Kind { group, track, counter };
  Kind kind = Kind::track;
  std::int64_t track_id = -1;  // -1: a group that has no spans of its own
  std::string label;
  std::string group;
  float y = 0;  // from the top of the first row, in pixels
  float height = 0;
  double limit_bytes_per_s = 0;
};

struct TimelineLayout {
  std::vector<TimelineRow> rows;
  float height = 0;

  const TimelineRow* row_of(std::int64_t track_id) const;
  const TimelineRow* row_at(float y) const;
};

// Empty tracks are left out; a closed group has only its first row.
TimelineLayout layout_of(const RunSnapshot& run, const std::set<std::string>& closed_groups);

}  // namespace sluice::gui
