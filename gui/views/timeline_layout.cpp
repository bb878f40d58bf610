#include "gui/views/timeline_layout.h"

#include <algorithm>

#include "gui/widgets/look.h"

namespace sluice::gui {
namespace {

constexpr float kGroupHeight = 19;
constexpr float kTrackHeight = 20;
constexpr float kCounterHeight = 36;

bool has_content(const RunSnapshot& run, const TrackFacts& track) {
  if (!track.is_counter) return run.used_tracks.contains(track.id);
  return run.counters != nullptr && run.counters->by_track.contains(track.id);
}

}  // namespace

const TimelineRow* TimelineLayout::row_of(std::int64_t track_id) const {
  const auto row = std::ranges::find(rows, track_id, &TimelineRow::track_id);
  return row == rows.end() ? nullptr : &*row;
}

const TimelineRow* TimelineLayout::row_at(float y) const {
  const auto row = std::ranges::find_if(
      rows, [y](const TimelineRow& r) { return y >= r.y && y < r.y + r.height; });
  return row == rows.end() ? nullptr : &*row;
}

TimelineLayout layout_of(const RunSnapshot& run, const std::set<std::string>& closed_groups) {
  TimelineLayout layout;
  const auto add = [&layout](TimelineRow row, float height) {
    row.y = layout.height;
    row.height = px(height);
    layout.height += row.height;
    layout.rows.push_back(std::move(row));
  };
  for (const TrackFacts& track : run.facts->tracks) {
    if (!has_content(run, track)) continue;
    const bool is_own = track.name.empty();  // the group's own track
    const bool is_new = layout.rows.empty() || layout.rows.back().group != track.group;
    TimelineRow row{.track_id = track.id,
                    .label = is_own ? track.group : track.name,
                    .group = track.group,
                    .limit_bytes_per_s = track.limit_bytes_per_s};
    if (is_new && !is_own) {
      TimelineRow head{
          .kind = TimelineRow::Kind::group, .label = track.group, .group = track.group};
      add(std::move(head), kGroupHeight);
    }
    if (closed_groups.contains(track.group) && !(is_new && is_own)) continue;
    if (is_own && !track.is_counter) row.kind = TimelineRow::Kind::group;
    if (track.is_counter) row.kind = TimelineRow::Kind::counter;
    add(std::move(row), track.is_counter ? kCounterHeight : kTrackHeight);
  }
  return layout;
}

}  // namespace sluice::gui
