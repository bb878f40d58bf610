#pragma once
// The timeline: tracks by machine in the order in which data flows. Wheel zooms to the cursor,
// dragging pans, Ctrl+drag zooms to a stretch, Shift+drag measures one; a click chooses a span, a
// double click fits what is under the cursor; W A S D zoom and pan.
//
// Thread contract: the frame thread.

#include <string>

#include "gui/views/find_bar.h"
#include "gui/views/note_flags.h"
#include "gui/views/run_pieces.h"
#include "gui/views/timeline_painter.h"
#include "gui/views/timeline_state.h"
#include "gui/views/track_menu.h"
#include "gui/views/view.h"

namespace sluice::gui {

class TimelineView : public View {
 public:
  TimelineView(const RunPieces& pieces, TimelineState& timeline,
               const std::unique_ptr<RunNotes>& notes);
  const char* help() const override;
  void draw_content() override;

 private:
  void draw_tools();
  void draw_strip();
  void draw_canvas();
  void draw_picture(TimelinePainter& painter, const TimelinePlace& place, ImVec2 at,
                    bool is_hovered);
  void draw_scroll_bar(const TimelineLayout& layout, const TimelinePlace& place, float width);
  TimelineLayout lay_out(const TimelinePlace& place, bool is_hovered);
  bool is_at_rest();
  void take_wheel(const TimelinePlace& place);
  void take_drag(const TimelinePlace& place);
  void take_keys(const TimelinePlace& place, bool is_hovered);
  void take_mouse(const TimelinePainter& painter, const TimelineLayout& layout,
                  const TimelinePlace& place);
  void choose_of_path(std::int64_t span_id);
  void fit_under_cursor(const HoveredBox& hovered, const TimelinePlace& place);
  void draw_box_tip(const HoveredBox& hovered) const;
  void draw_summary_tip(const TimelinePainter::HoveredSummary& summary) const;
  void draw_away_tip(const TimelineRow& row) const;

  const RunPieces& pieces_;
  TimelineState& timeline_;
  FindBar find_bar_;
  TrackMenu track_menu_;
  NoteFlags note_flags_;

  enum class Drag { none, pan, zoom, measure };
  Drag drag_ = Drag::none;
  TimeNs drag_ts_ = 0;   // where it began
  TimeRange drag_view_;  // the view then
  float drag_scroll_ = 0;
  float strip_grab_ = -1;  // minimap: distance of the mouse from the view's begin
  TimeRange seen_view_;    // in the frame before
  double moved_at_ = 0;    // when it was moved last
};

}  // namespace sluice::gui
