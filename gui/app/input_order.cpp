#include "gui/app/input_order.h"

namespace sluice::gui {
namespace {

bool is_modifier(ImGuiKey key) {
  return (key & ImGuiMod_Mask_) != 0 || (key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper) ||
         (key >= ImGuiKey_ReservedForModCtrl && key <= ImGuiKey_ReservedForModSuper);
}

// The first change of a modifier behind another key's press.
int first_to_wait(const ImVector<ImGuiInputEvent>& events) {
  bool has_press = false;
  for (int i = 0; i < events.Size; ++i) {
    if (events[i].Type != ImGuiInputEventType_Key) continue;
    if (!is_modifier(events[i].Key.Key)) {
      has_press = has_press || events[i].Key.Down;
    } else if (has_press) {
      return i;
    }
  }
  return events.Size;
}

}  // namespace

HeldInput::HeldInput() {
  ImVector<ImGuiInputEvent>& events = ImGui::GetCurrentContext()->InputEventsQueue;
  const int first = first_to_wait(events);
  for (int i = first; i < events.Size; ++i) held_.push_back(events[i]);
  events.resize(first);
}

HeldInput::~HeldInput() {
  ImVector<ImGuiInputEvent>& events = ImGui::GetCurrentContext()->InputEventsQueue;
  for (const ImGuiInputEvent& event : held_) events.push_back(event);
}

}  // namespace sluice::gui
