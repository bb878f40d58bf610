#pragma once
// How each step divides into forward, backward and update.
//
// Thread contract: the frame thread.

#include "gui/views/view.h"

namespace sluice::gui {

class PhasesView : public View {
 public:
  PhasesView();
  const char* help() const override;
  void draw_content(Session& session) override;
};

}  // namespace sluice::gui
