#pragma once
// Draws the rows of the timeline into a rectangle of the window: labels, boxes, counters, summaries
// of closed groups, flows.
// The cost follows the columns of the screen, not the spans of the run.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <imgui.h>

#include <string>
#include <vector>

#include "gui/views/group_summary.h"
#include "gui/views/timeline_place.h"
#include "gui/widgets/rect_batch.h"

namespace sluice::gui {

// The box under the mouse; null: none. The window that it is of must live as long.
struct HoveredBox {
  const Box* box = nullptr;
  const TimelineRow* row = nullptr;
};

class TimelinePainter {
 public:
  TimelinePainter(const RunPieces& pieces, const TimelineState& timeline,
                  const TimelineLayout& layout, const TimelinePlace& place);

  void draw_rows();
  void draw_chosen();  // its outline, and lines to what set it off and what it set off
  void draw_measured();
  void draw_labels();
  HoveredBox box_at(ImVec2 mouse) const;
  // The summary under the mouse, with its row; no row: there is none.
  struct HoveredSummary {
    const TimelineRow* row = nullptr;
    BusyColumn column;
  };
  HoveredSummary summary_at(ImVec2 mouse) const;

 private:
  void draw_boxes(const TimelineRow& row, const TrackBoxes& track);
  void draw_box(const TimelineRow& row, const Box& box, int lane_count, float left, float end,
                RectBatch& rects);
  void draw_box_text(const Box& box, ImVec2 low, ImVec2 high, ImU32 colour);
  void draw_counter(const TimelineRow& row);
  void draw_summary(const TimelineRow& row);
  void draw_label(const TimelineRow& row);
  ImU32 colour_of(std::int32_t name_id) const;
  bool is_dimmed(const Box& box) const;
  bool is_dimmed(std::int32_t name_id) const;
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
