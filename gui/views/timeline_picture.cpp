#include "gui/views/timeline_picture.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "gui/data/timeline_window.h"
#include "gui/views/run_pieces.h"

namespace sluice::gui {
namespace {

// Quantised, so that panning and following ask for something new only now and then.
TimelineRequest request_for(const TimeRange& view, float width) {
  const auto column_ns = static_cast<TimeNs>(static_cast<double>(view.width()) /
                                             std::max(1.0, static_cast<double>(width)));
  const auto exact = static_cast<std::uint64_t>(std::max<TimeNs>(1, column_ns));
  const auto quarter =
      static_cast<TimeNs>(std::bit_ceil(static_cast<std::uint64_t>(view.width() / 4 + 1)));
  const auto down = [quarter](TimeNs ts) {
    const TimeNs rest = ts % quarter;
    return ts - (rest < 0 ? rest + quarter : rest);
  };
  return {down(view.begin), down(view.end) + quarter, static_cast<TimeNs>(std::bit_floor(exact))};
}

}  // namespace

void TimelinePicture::ask_for(const TimeView& view, float width) {
  RunFeed* feed = pieces_->feed.get();
  const TimeRange& range = view.range();
  const TimelineRequest wanted = request_for(range, width);
  if (wanted == asked_ && asked_of_ == feed) return;
  const TimelineWindow* has = pieces_->timeline.get();
  const bool is_enough = has != nullptr && asked_of_ == feed && has->request == asked_ &&
                         has->request.column_ns == wanted.column_ns &&
                         has->covers(range.begin, range.end) && !view.follows();
  if (is_enough) return;
  asked_ = wanted;
  asked_of_ = feed;
  feed->want_timeline(wanted);
}

bool TimelinePicture::is_there() const {
  return pieces_->timeline != nullptr && pieces_->timeline->request == asked_;
}

}  // namespace sluice::gui
