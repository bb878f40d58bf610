#include "gui/views/timeline_folding.h"

#include "gui/data/run_snapshot.h"

namespace sluice::gui {
namespace {

// Distances from the view at which a row goes and comes back, in widths of the view.
constexpr double kGoesAt = 1;
constexpr double kComesAt = 0.25;

bool is_over(const RunSnapshot& run, const TrackExtent& extent) {
  return run.end_ts - extent.end_ts > extent.end_ts - run.begin_ts;
}

}  // namespace

void TimelineFolding::toggle(const std::string& group) {
  if (closed_.erase(group) == 0) closed_.insert(group);
}

void TimelineFolding::close_all(const RunFacts& facts) {
  for (const TrackFacts& track : facts.tracks) closed_.insert(track.group);
}

bool TimelineFolding::update(const RunSnapshot& run, TimeNs view_begin, TimeNs view_end,
                             bool is_at_rest) {
  std::set<std::int64_t> wanted;
  for (const TrackFacts& track : run.facts->tracks) {
    const auto used = run.used_tracks.find(track.id);
    const bool is_heading = track.name.empty();  // its group's name stands there
    if (keeps_all_rows_ || is_heading || used == run.used_tracks.end()) continue;
    if (!is_over(run, used->second)) continue;
    const double widths = is_folded_away(track.id) ? kComesAt : kGoesAt;
    const auto room = static_cast<TimeNs>(widths * static_cast<double>(view_end - view_begin));
    if (used->second.end_ts < view_begin - room) wanted.insert(track.id);
  }
  const bool may_change = is_at_rest || !has_begun_;
  const bool is_other = wanted != away_;
  has_begun_ = true;
  awaits_rest_ = is_other && !may_change;
  if (!is_other || !may_change) return false;
  away_ = std::move(wanted);
  return true;
}

void TimelineFolding::reveal(const RunFacts& facts, std::int64_t track_id) {
  away_.erase(track_id);
  if (const TrackFacts* track = facts.track(track_id); track != nullptr)
    closed_.erase(track->group);
}

}  // namespace sluice::gui
