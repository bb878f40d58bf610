#pragma once
// The losses of the recording, the machine, the settings.
//
// Thread contract: the frame thread.

#include "gui/views/run_pieces.h"
#include "gui/views/view.h"

namespace sluice::gui {

class FactsView : public View {
 public:
  explicit FactsView(const RunPieces& pieces);
  const char* help() const override;
  void draw_content() override;

 private:
  const RunPieces& pieces_;
};

}  // namespace sluice::gui
