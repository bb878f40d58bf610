#include "gui/widgets/text_input.h"

// Needs imgui.h before it, which comes with the header above.
#include <misc/cpp/imgui_stdlib.h>

namespace sluice::gui {

bool input_line(const char* id, const char* hint, std::string& text) {
  return ImGui::InputTextWithHint(id, hint, &text, ImGuiInputTextFlags_EnterReturnsTrue);
}

bool completing_line(const char* id, const char* hint, std::string& text,
                     const std::function<std::string()>& complete) {
  const auto on_tab = [](ImGuiInputTextCallbackData* data) {
    const std::string whole = (*static_cast<const std::function<std::string()>*>(data->UserData))();
    data->DeleteChars(0, data->BufTextLen);
    data->InsertChars(0, whole.c_str());
    return 0;
  };
  return ImGui::InputTextWithHint(
      id, hint, &text,
      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackCompletion, on_tab,
      const_cast<std::function<std::string()>*>(&complete));
}

void input_lines(const char* id, std::string& text, ImVec2 size) {
  ImGui::InputTextMultiline(id, &text, size);
}

}  // namespace sluice::gui
