#pragma once
// Notes (gui/data/run_notes.h) as flags on the timeline's ruler, and the box in which one is
// written.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <memory>
#include <string>

#include "gui/views/timeline_place.h"
#include "gui/views/timeline_state.h"

namespace sluice::gui {

class RunNotes;

class NoteFlags {
 public:
  // Both live longer; the notes are null until a run is open.
  NoteFlags(const std::unique_ptr<RunNotes>& notes, const RunPieces& pieces,
            TimelineState& timeline)
      : notes_(notes), pieces_(pieces), timeline_(timeline) {}

  // Over the ruler; `is_hovered`: the mouse is over the timeline. True: the mouse is on a flag.
  bool draw_flags(const TimelinePlace& place, bool is_hovered);
  // What the command asked for, or a click on a flag.
  void draw_box();

 private:
  void begin_new();
  void begin_change(std::size_t index);
  void keep(const std::string& text);
  std::string title() const;

  const std::unique_ptr<RunNotes>& notes_;
  const RunPieces& pieces_;
  TimelineState& timeline_;
  std::string text_;
  std::int64_t index_ = -1;  // of the note that is changed; -1: a new one
  TimeNs ts_ = 0;
  std::int64_t span_id_ = 0;
  bool is_opening_ = false;
};

}  // namespace sluice::gui
