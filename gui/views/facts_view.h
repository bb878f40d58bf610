#pragma once
// What was lost while recording, the machine, the settings.
//
// Thread contract: the frame thread.

#include "gui/views/view.h"

namespace sluice::gui {

class FactsView : public View {
 public:
  FactsView();
  const char* help() const override;
  void draw_content(Session& session) override;
};

}  // namespace sluice::gui
