#pragma once
// The rows of the timeline: groups of tracks, tracks, counters, each with its place from the top.
//
// Thread contract: the frame thread.

#include <string>
#include <vector>

#include "gui/data/run_feed.h"
#include "gui/views/timeline_folding.h"
#include "gui/views/track_choice.h"

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

  // The first row of a group:
  bool has_rows = false;                   // below it: it can be closed
  bool is_closed = false;                  // and is; it shows how busy its members are
  std::vector<std::int64_t> members = {};  // its tracks that have spans
  std::vector<std::int64_t> away = {};     // those whose rows are folded away

  bool is_summary() const { return is_closed && !members.empty(); }
};

struct TimelineLayout {
  std::vector<TimelineRow> rows;
  float height = 0;

  // The track's own row, else that of its group, where the track is folded; null: neither.
  const TimelineRow* row_of(std::int64_t track_id) const;
  const TimelineRow* row_at(float y) const;
};

// Empty tracks are left out, and those that nobody wants to see; pinned groups come first; a closed
// group has only its first row.
TimelineLayout layout_of(const RunSnapshot& run, const TimelineFolding& folding,
                         const TrackChoice& choice = {});

// How far the row at `y` of the layout before has moved down in the one after; where it is gone,
// the next one that is there counts.
float moved_down(const TimelineLayout& before, const TimelineLayout& after, float y);

}  // namespace sluice::gui
