#pragma once
// A chord that is pressed and released between two frames. ImGui takes a key's press and its
// release in a frame each, but the release of Ctrl in the same frame as the press of the key before
// it, and then sees the key without Ctrl. So a modifier that changes behind another key's press
// waits for the next frame, and all that came after it waits with it.
//
// Thread contract: the frame thread, around ImGui::NewFrame().

#include <imgui.h>
#include <imgui_internal.h>

namespace sluice::gui {

class HeldInput {
 public:
  HeldInput();   // takes out of ImGui's queue what has to wait
  ~HeldInput();  // puts it back behind what is left there
  HeldInput(const HeldInput&) = delete;
  HeldInput& operator=(const HeldInput&) = delete;

 private:
  ImVector<ImGuiInputEvent> held_;
};

}  // namespace sluice::gui
