#pragma once
// The picture of a stretch of time at a zoom: for each track about as many boxes as the screen has
// columns, however many spans lie there.
//
// A box is one span, or stands for several: those of a bin of the run database's levels of detail
// (storage/rundb/lod.h), or those that begin and end within one column. Where a window holds few
// enough spans they are read themselves, else bins, which may then be some columns wide.
//
// Thread contract: plain data; read_timeline uses its reader.

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "gui/data/timeline_request.h"

namespace sluice::rundb {
class Reader;
}

namespace sluice::gui {

class SpanCache;
class SpanIndex;
struct RunFacts;

struct Box {
  TimeNs ts = 0;
  TimeNs end_ts = 0;
  TimeNs submit_ts = 0;
  std::int64_t span_id = 0;  // 0: stands for `count` spans
  std::int64_t bytes = 0;
  std::int64_t padding_bytes = 0;
  TimeNs busy_ns = 0;        // of all its spans; more than its length where several overlap
  std::int32_t name_id = 0;  // the longest one's
  std::int32_t count = 1;
  std::int32_t step = -1;
  std::int32_t subgroup = -1;
  std::int32_t device = -1;
  std::int32_t layer = -1;
  std::uint8_t lane = 0;
  bool is_failed = false;

  bool is_span() const { return span_id > 0; }
};

struct TrackBoxes {
  std::int64_t track_id = 0;
  int lane_count = 1;
  std::vector<Box> boxes;  // by ts
  TimeNs longest_ns = 0;   // no box is longer, so a search by ts knows how far back to look

  // In order of ts: all that touch the stretch, and perhaps some that end before it.
  std::span<const Box> near(TimeNs begin, TimeNs end) const;
};

inline constexpr int kLanesMax = 4;  // what overlaps more shares the last one

struct TimelineWindow {
  TimelineRequest request;
  TimeNs begin = 0;  // what was read: the request and room on both sides
  TimeNs end = 0;
  bool has_spans = false;  // read themselves, not as bins
  std::vector<TrackBoxes> tracks;

  bool covers(TimeNs from, TimeNs to) const { return begin <= from && to <= end; }
  const TrackBoxes* of_track(std::int64_t track_id) const;
};

// A window with more spans is read as bins: this number of rows takes about 100 ms.
inline constexpr double kSpansReadMax = 60'000;

// Around what is asked for: `none`, so that it is there soon, or three quarters of it on both
// sides, so that panning by less needs nothing new. Whether spans are read themselves does not
// depend on it.
enum class TimelineRoom : std::uint8_t { none, wide };

Result<TimelineWindow> read_timeline(rundb::Reader& reader, const RunFacts& facts,
                                     const SpanIndex& index, SpanCache& cache,
                                     const TimelineRequest& request,
                                     TimelineRoom room = TimelineRoom::wide);

// The whole run as a strip: for each of `column_count` equal stretches of time the name that took
// most of it, and the share of the time of all tracks that moved or computed something.
struct MinimapColumn {
  std::int32_t name_id = -1;  // -1: nothing
  float busy = 0;             // 0 to 1: of the busiest column
};
struct Minimap {
  TimeNs begin = 0;
  TimeNs end = 0;
  std::vector<MinimapColumn> columns;
};
Result<Minimap> read_minimap(rundb::Reader& reader, const RunFacts& facts, TimeNs begin, TimeNs end,
                             std::size_t column_count);

}  // namespace sluice::gui
