#include "gui/views/session.h"

namespace sluice::gui {

void Session::pick_up() {
  if (pieces.feed == nullptr) return;
  pieces.pick_up();
  control.pick_up(pieces.run.get(), pieces.statistics);
  timeline.pick_up();
}

void Session::close() {
  pieces = RunPieces();
  timeline.close();
  control = RunControl();
  sql = SqlRequest();
  foreground = Foreground();
}

}  // namespace sluice::gui
