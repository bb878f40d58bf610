#pragma once
// The boxes that the timeline is drawn from: asked for where a view needs others.
//
// Thread contract: the frame thread.

#include "gui/data/timeline_request.h"
#include "gui/views/time_view.h"

namespace sluice::gui {

class RunFeed;

class TimelinePicture {
 public:
  // `pieces` lives longer.
  explicit TimelinePicture(const RunPieces& pieces) : pieces_(&pieces) {}

  // Asks the feed for what `width` columns of the view can show, where that is something new.
  void ask_for(const TimeView& view, float width);
  // The picture that is drawn shows this view, as finely as the view can be shown.
  bool is_there() const;
  const TimelineRequest& asked() const { return asked_; }

 private:
  const RunPieces* pieces_;
  TimelineRequest asked_;
  const RunFeed* asked_of_ = nullptr;
};

}  // namespace sluice::gui
