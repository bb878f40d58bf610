#include "gui/app/notice.h"

#include <imgui_internal.h>

#include <algorithm>

#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr float kPanelWidth = 760;
constexpr float kPanelBelow = 120;
constexpr float kButtonsWidth = 250;  // of a bar: two

void begin_bar(const char* name, bool& is_shown) {
  const float height = ImGui::GetFrameHeight() + px(8);
  is_shown = ImGui::BeginViewportSideBar(
      name, ImGui::GetMainViewport(), ImGuiDir_Up, height,
      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse |
          ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing);
}

}  // namespace

bool begin_panel(const char* name, float width_max, float below) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(width_max, viewport->WorkSize.x - px(40));
  ImGui::SetNextWindowPos({viewport->GetCenter().x - width / 2, viewport->WorkPos.y + below});
  ImGui::SetNextWindowSize({width, 0});
  return ImGui::Begin(name, nullptr,
                      ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoDocking |
                          ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
}

Notice::Notice(const char* name, Place place, ImU32 border) : place_(place) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, px(1));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(4)));
  ImGui::PushStyleColor(ImGuiCol_Border, border);
  if (place_ == Place::bar) {
    begin_bar(name, is_shown_);
  } else {
    is_shown_ = begin_panel(name, px(kPanelWidth), px(kPanelBelow));
  }
}

Notice::~Notice() {
  // A menu or a box that somebody opened lies above it.
  if (!ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel))
    ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(2);
}

void Notice::say(const std::string& title, const std::string& text, const std::string& note) {
  if (place_ == Place::bar) {
    say_in_line(title, note.empty() ? text : text + " " + note);
    return;
  }
  draw_title(title);
  draw_coloured(look().colours.text, text);
  if (!note.empty()) draw_note(note);
}

void Notice::say_in_line(const std::string& title, const std::string& text) {
  ImGui::AlignTextToFramePadding();
  {
    const FontScope font(look().bold, Look::kTextSize);
    ImGui::TextUnformatted(title.c_str());
  }
  ImGui::SameLine(0, px(10));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  const float room = std::max(px(40), ImGui::GetContentRegionAvail().x - px(kButtonsWidth));
  const float width = std::min(size.x, room);
  ImGui::Dummy({width, ImGui::GetFrameHeight()});
  if (size.x > room) ImGui::SetItemTooltip("%s", text.c_str());
  const ImVec2 top = {at.x, at.y + ImGui::GetStyle().FramePadding.y};
  ImGui::RenderTextEllipsis(ImGui::GetWindowDrawList(), top, {at.x + width, top.y + size.y},
                            at.x + width, text.c_str(), nullptr, &size);
  has_button_ = true;  // the next one stands beside the sentence
}

bool Notice::button(const char* label) {
  if (has_button_) ImGui::SameLine();
  has_button_ = true;
  return ImGui::Button(label);
}

}  // namespace sluice::gui
