#pragma once
// Draws the timeline into a rectangle of the window: boxes, counters, axis, steps, changes, flows.
// What it costs follows the columns of the screen, not the spans of the run.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gui/views/timeline_layout.h"
#include "gui/views/timeline_state.h"
#include "gui/widgets/rect_batch.h"

namespace sluice::gui {

// Where things are: time to the right of the labels, rows below the axis.
struct TimelinePlace {
  ImVec2 low;  // of the part in which time is drawn, below the axis
  ImVec2 high;
  float label_width = 0;  // to the left of it
  float axis_height = 0;  // above it
  float path_height = 0;  // the lowest part of the axis: gui/views/path_track.h
  float scroll_y = 0;
  TimeRange view;

  float x(TimeNs ts) const {
    return low.x + static_cast<float>(static_cast<double>(ts - view.begin) * pixels_a_ns());
  }
  TimeNs ts(float at_x) const {
    return view.begin + static_cast<TimeNs>(static_cast<double>(at_x - low.x) / pixels_a_ns());
  }
  double pixels_a_ns() const {
    return static_cast<double>(high.x - low.x) /
           static_cast<double>(view.width() > 0 ? view.width() : 1);
  }
  TimeNs column_ns() const { return std::max<TimeNs>(1, std::llround(1 / pixels_a_ns())); }
  float axis_low() const { return low.y - path_height; }  // beneath the steps
  float row_y(const TimelineRow& row) const { return low.y + row.y - scroll_y; }
};

// The box under the mouse; null: none. The window that it is of must live as long.
struct HoveredBox {
  const Box* box = nullptr;
  const TimelineRow* row = nullptr;
};

class TimelinePainter {
 public:
  TimelinePainter(const RunPieces& pieces, const TimelineState& timeline,
                  const TimelineLayout& layout, const TimelinePlace& place);

  void draw_axis();
  void draw_rows();
  void draw_steps_and_changes();
  void draw_chosen();  // its outline, and lines to what set it off and what it set off
  void draw_measured();
  void draw_labels();
  HoveredBox box_at(ImVec2 mouse) const;

 private:
  void draw_boxes(const TimelineRow& row, const TrackBoxes& track);
  void draw_box(const TimelineRow& row, const Box& box, int lane_count, float left, float end,
                RectBatch& rects);
  void draw_box_text(const Box& box, ImVec2 low, ImVec2 high, ImU32 colour);
  void draw_counter(const TimelineRow& row);
  void draw_tag(float x, float y, const std::string& text, ImU32 colour);
  ImU32 colour_of(std::int32_t name_id) const;
  bool is_dimmed(const Box& box) const;
  ImVec2 middle_of(const rundb::SpanRow& row, bool at_end) const;

  const RunPieces& pieces_;
  const TimelineState& timeline_;
  const TimelineLayout& layout_;
  const TimelinePlace& place_;
  ImDrawList* list_;
  std::vector<ImU32> colours_;  // by name
  std::vector<bool> dimmed_;    // by name: not what is searched for
  const StepPaths* paths_;      // null: none
};

}  // namespace sluice::gui
