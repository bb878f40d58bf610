#pragma once
// The losses of the recording, notes, the machine, the settings.
//
// Thread contract: the frame thread.

#include <memory>

#include "gui/views/foreground.h"
#include "gui/views/run_pieces.h"
#include "gui/views/timeline_state.h"
#include "gui/views/view.h"

namespace sluice::gui {

class RunNotes;

class FactsView : public View {
 public:
  FactsView(const RunPieces& pieces, TimelineState& timeline,
            const std::unique_ptr<RunNotes>& notes, Foreground& foreground);
  const char* help() const override;
  void draw_content() override;

 private:
  void draw_notes();

  const RunPieces& pieces_;
  TimelineState& timeline_;
  const std::unique_ptr<RunNotes>& notes_;
  Foreground& foreground_;
};

}  // namespace sluice::gui
