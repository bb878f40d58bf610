#pragma once
// The ruler above the rows of the timeline: times, changes of knobs, steps, each on a line of its
// own, and their lines through the rows.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <optional>

#include "gui/data/run_facts.h"
#include "gui/views/timeline_place.h"

namespace sluice::gui {

// Taller from the first change on.
float ruler_height(const RunFacts& facts);

// When the first step with the new value begins; none: no step before it has ended yet.
std::optional<TimeNs> begin_of(const ChangeMark& change, const std::vector<rundb::StepRow>& steps);
// The step under way then, else the one that ends next; null: behind the last step.
const rundb::StepRow* step_at_or_after(const std::vector<rundb::StepRow>& steps, TimeNs ts);

class TimelineRuler {
 public:
  TimelineRuler(const RunPieces& pieces, const TimelinePlace& place);

  void draw_times();
  void draw_steps();
  // Each change has its amber line; those whose names have no room are counted. What is under the
  // mouse is told in full.
  void draw_changes(bool is_hovered);

 private:
  void draw_change_tip(std::size_t first, std::size_t count) const;

  const RunPieces& pieces_;
  const TimelinePlace& place_;
  ImDrawList* list_;
  std::vector<const ChangeMark*> shown_;  // by time
};

}  // namespace sluice::gui
