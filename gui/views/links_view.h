#pragma once
// Bytes and bandwidth of each link beside what it could move.
//
// Thread contract: the frame thread.

#include "gui/views/view.h"

namespace sluice::gui {

class LinksView : public View {
 public:
  LinksView();
  const char* help() const override;
  void draw_content(Session& session) override;
};

}  // namespace sluice::gui
