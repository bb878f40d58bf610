#include "gui/views/view_history.h"

#include <algorithm>

namespace sluice::gui {
namespace {

// A little further along, or a little nearer, is the same place.
bool is_about(const ViewHistory::Place& a, const ViewHistory::Place& b) {
  if (a.span_id != b.span_id) return false;
  const TimeNs both = std::min(a.range.end, b.range.end) - std::max(a.range.begin, b.range.begin);
  return both * 2 > std::max(a.range.width(), b.range.width());
}

}  // namespace

void ViewHistory::note(const Place& place, double now_seconds) {
  if (place.range.width() <= 0) return;  // nothing is shown yet
  if (resting_since_ < 0 || !(place == resting_)) {
    // The window sleeps while nothing happens: the rest is known when something does.
    if (resting_since_ >= 0 && now_seconds - resting_since_ >= kRestSeconds) keep(resting_);
    resting_ = place;
    resting_since_ = now_seconds;
  } else if (now_seconds - resting_since_ >= kRestSeconds) {
    keep(place);
  }
}

void ViewHistory::keep(const Place& place) {
  if (!places_.empty() && is_about(places_[at_], place)) {
    places_[at_] = place;
    return;
  }
  if (!places_.empty()) places_.resize(at_ + 1);  // whoever goes elsewhere has no way forward
  places_.push_back(place);
  if (places_.size() > kPlacesMax) places_.erase(places_.begin());
  at_ = places_.size() - 1;
}

bool ViewHistory::can_go(int direction) const {
  if (places_.empty()) return false;
  const bool is_elsewhere = resting_since_ >= 0 && !is_about(places_[at_], resting_);
  if (direction < 0) return at_ > 0 || is_elsewhere;
  return at_ + 1 < places_.size() && !is_elsewhere;
}

std::optional<ViewHistory::Place> ViewHistory::go(int direction) {
  if (!can_go(direction)) return {};
  if (resting_since_ >= 0) keep(resting_);  // so that there is a way back to here
  if (direction < 0 && at_ == 0) return {};
  at_ = direction < 0 ? at_ - 1 : at_ + 1;
  resting_ = places_[at_];
  return resting_;
}

}  // namespace sluice::gui
