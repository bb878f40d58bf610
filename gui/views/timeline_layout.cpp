#include "gui/views/timeline_layout.h"

#include <algorithm>

#include "gui/data/counter_store.h"
#include "gui/data/run_snapshot.h"
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

class LayoutBuilder {
 public:
  explicit LayoutBuilder(const TimelineFolding& folding) : folding_(&folding) {}

  void add_track(const TrackFacts& track) {
    const bool is_own = track.name.empty();  // the group's own track
    const bool is_new = layout_.rows.empty() || layout_.rows[head_].group != track.group;
    if (is_new) {
      head_ = layout_.rows.size();
      if (!is_own)
        add({.kind = TimelineRow::Kind::group, .label = track.group, .group = track.group},
            kGroupHeight);
    }
    const bool is_head = is_new && is_own;
    if (is_head || add_to_group(track)) add_row(track);
    if (!track.is_counter) layout_.rows[head_].members.push_back(track.id);
  }
  TimelineLayout take() { return std::move(layout_); }

 private:
  // False: it has no row of its own.
  bool add_to_group(const TrackFacts& track) {
    TimelineRow& head = layout_.rows[head_];
    head.has_rows = true;
    head.is_closed = folding_->is_closed(track.group);
    if (head.is_closed) return false;
    if (!folding_->is_folded_away(track.id)) return true;
    head.away.push_back(track.id);
    return false;
  }

  void add_row(const TrackFacts& track) {
    const bool is_own = track.name.empty();
    TimelineRow row{.track_id = track.id,
                    .label = is_own ? track.group : track.name,
                    .group = track.group,
                    .limit_bytes_per_s = track.limit_bytes_per_s};
    if (is_own && !track.is_counter) row.kind = TimelineRow::Kind::group;
    if (track.is_counter) row.kind = TimelineRow::Kind::counter;
    add(std::move(row), track.is_counter ? kCounterHeight : kTrackHeight);
  }

  void add(TimelineRow row, float height) {
    row.y = layout_.height;
    row.height = px(height);
    layout_.height += row.height;
    layout_.rows.push_back(std::move(row));
  }

  const TimelineFolding* folding_;
  TimelineLayout layout_;
  std::size_t head_ = 0;  // the first row of the group at hand
};

bool is_same_row(const TimelineRow& a, const TimelineRow& b) {
  return a.track_id == b.track_id && a.group == b.group && a.kind == b.kind;
}

}  // namespace

const TimelineRow* TimelineLayout::row_of(std::int64_t track_id) const {
  if (track_id < 0) return nullptr;
  const TimelineRow* of_group = nullptr;
  for (const TimelineRow& row : rows) {
    if (row.track_id == track_id) return &row;
    if (std::ranges::find(row.members, track_id) != row.members.end()) of_group = &row;
  }
  return of_group;
}

const TimelineRow* TimelineLayout::row_at(float y) const {
  const auto row = std::ranges::find_if(
      rows, [y](const TimelineRow& r) { return y >= r.y && y < r.y + r.height; });
  return row == rows.end() ? nullptr : &*row;
}

TimelineLayout layout_of(const RunSnapshot& run, const TimelineFolding& folding,
                         const TrackChoice& choice) {
  LayoutBuilder builder(folding);
  for (const bool is_pinned : {true, false}) {
    for (const TrackFacts& track : run.facts->tracks) {
      if (choice.is_pinned(track.group) != is_pinned || !has_content(run, track)) continue;
      if (choice.shows(track.group, track.name)) builder.add_track(track);
    }
  }
  return builder.take();
}

float moved_down(const TimelineLayout& before, const TimelineLayout& after, float y) {
  for (const TimelineRow& row : before.rows) {
    if (row.y + row.height <= y) continue;
    const auto same = std::ranges::find_if(
        after.rows, [&row](const TimelineRow& other) { return is_same_row(row, other); });
    if (same != after.rows.end()) return same->y - row.y;
  }
  return 0;
}

}  // namespace sluice::gui
