#include "gui/widgets/text_input.h"

// Needs imgui.h before it, which comes with the header above.
#include <misc/cpp/imgui_stdlib.h>

namespace sluice::gui {

bool input_line(const char* id, const char* hint, std::string& text) {
  return ImGui::InputTextWithHint(id, hint, &text, ImGuiInputTextFlags_EnterReturnsTrue);
}

void input_lines(const char* id, std::string& text, ImVec2 size) {
  ImGui::InputTextMultiline(id, &text, size);
}

}  // namespace sluice::gui
