#pragma once
// Bytes and bandwidth of each link beside what it could move.
//
// Thread contract: the frame thread.

#include "gui/views/run_pieces.h"
#include "gui/views/view.h"

namespace sluice::gui {

class LinksView : public View {
 public:
  explicit LinksView(const RunPieces& pieces);
  const char* help() const override;
  void draw_content() override;

 private:
  const RunPieces& pieces_;
};

}  // namespace sluice::gui
