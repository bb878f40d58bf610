#include "gui/views/session.h"

#include <imgui.h>

#include "gui/data/run_notes.h"

namespace sluice::gui {

Session::Session() = default;
Session::~Session() = default;

void Session::pick_up() {
  if (pieces.feed == nullptr) return;
  if (notes != nullptr) notes->pick_up();
  pieces.pick_up();
  control.pick_up(pieces.run.get(), pieces.statistics);
  timeline.pick_up(ImGui::GetTime());
}

void Session::close() {
  pieces = RunPieces();
  timeline.close();
  control = RunControl();
  sql = SqlRequest();
  notes.reset();
  wanted_run.clear();
  foreground = Foreground();
}

}  // namespace sluice::gui
