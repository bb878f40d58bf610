#include "gui/app/notice.h"

#include <imgui_internal.h>

#include <algorithm>

#include "gui/widgets/look.h"

namespace sluice::gui {

bool begin_panel(const char* name, float width_max, float below) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(width_max, viewport->WorkSize.x - px(40));
  ImGui::SetNextWindowPos({viewport->GetCenter().x - width / 2, viewport->WorkPos.y + below});
  ImGui::SetNextWindowSize({width, 0});
  return ImGui::Begin(name, nullptr,
                      ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoDocking |
                          ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
}

Notice::Notice(const char* name, float width_max, float below, ImU32 border) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, px(1));
  ImGui::PushStyleColor(ImGuiCol_Border, border);
  is_shown_ = begin_panel(name, width_max, below);
}

Notice::~Notice() {
  // A menu or a box that somebody opened lies above it.
  if (!ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel))
    ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

}  // namespace sluice::gui
