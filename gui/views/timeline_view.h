#pragma once
// The timeline: tracks by machine in the order in which data flows. Wheel zooms to the cursor,
// dragging pans, Ctrl+drag zooms to a stretch, Shift+drag measures one; a click chooses a span.
//
// Thread contract: the frame thread.

#include <set>
#include <string>

#include "gui/views/run_pieces.h"
#include "gui/views/timeline_painter.h"
#include "gui/views/timeline_state.h"
#include "gui/views/view.h"

namespace sluice::gui {

class TimelineView : public View {
 public:
  TimelineView(const RunPieces& pieces, TimelineState& timeline);
  const char* help() const override;
  void draw_content() override;

 private:
  void draw_tools();
  void draw_search();
  void draw_strip();
  void draw_canvas();
  void show_track(std::int64_t track_id, float rows_height);
  void take_wheel(const TimelinePlace& place, float rows_height);
  void take_drag(const TimelinePlace& place, float rows_height);
  void take_keys();
  void take_click(const TimelinePlace& place, const HoveredBox& hovered);
  void draw_box_tip(const HoveredBox& hovered) const;
  void draw_sums(const TimelinePlace& place);

  const RunPieces& pieces_;
  TimelineState& timeline_;

  enum class Drag { none, pan, zoom, measure };
  Drag drag_ = Drag::none;
  TimeNs drag_ts_ = 0;   // where it began
  TimeRange drag_view_;  // the view then
  float drag_scroll_ = 0;
  float scroll_y_ = 0;
  float strip_grab_ = -1;  // minimap: distance of the mouse from the view's begin
  std::set<std::string> closed_groups_;
  std::string search_text_;
};

}  // namespace sluice::gui
