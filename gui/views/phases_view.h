#pragma once
// How each step divides into forward, backward and update.
//
// Thread contract: the frame thread.

#include "gui/views/run_pieces.h"
#include "gui/views/view.h"

namespace sluice::gui {

class PhasesView : public View {
 public:
  explicit PhasesView(const RunPieces& pieces);
  const char* help() const override;
  void draw_content() override;

 private:
  const RunPieces& pieces_;
};

}  // namespace sluice::gui
