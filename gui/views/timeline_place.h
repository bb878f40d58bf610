#pragma once
// Where things are on the timeline: time to the right of the labels, rows below the ruler.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "gui/views/timeline_layout.h"
#include "gui/views/timeline_state.h"

namespace sluice::gui {

// The part to the left of the time, without the display's scale.
inline constexpr float kTrackLabelWidth = 140;

struct TimelinePlace {
  ImVec2 low;  // of the part in which time is drawn, below the ruler
  ImVec2 high;
  float label_width = 0;    // to the left of it
  float axis_height = 0;    // above it
  float path_height = 0;    // the lowest part of the axis: gui/views/path_track.h
  float answer_height = 0;  // above that, where there is one: gui/views/answer_track.h
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
  float axis_low() const { return low.y - path_height - answer_height; }  // beneath the steps
  float row_y(const TimelineRow& row) const { return low.y + row.y - scroll_y; }
  float rows_height() const { return high.y - low.y; }
};

// A small label on a ground of its own, moved so that it lies within the time that is drawn.
float tag_width(const std::string& text);
void draw_tag(ImDrawList* list, const TimelinePlace& place, ImVec2 at, const std::string& text,
              ImU32 colour);

}  // namespace sluice::gui
