#include "gui/app/docks.h"

#include <imgui_internal.h>

#include <algorithm>

#include "base/words.h"
#include "gui/widgets/look.h"

namespace sluice::gui {
namespace {

constexpr const char* kDockHost = "##dock host";

}  // namespace

void Docks::draw(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground,
                 Settings& settings) {
  draw_space(foreground);
  if (!has_docked_new_views_) dock_new_views(views, foreground);
  has_docked_new_views_ = true;
  draw_views(views, foreground, settings);
}

void Docks::draw_space(Foreground& foreground) {
  const ImGuiID dock = ImGui::GetID(kDockHost);
  const ImGuiDockNode* node = ImGui::DockBuilderGetNode(dock);
  if (lays_out_ || node == nullptr ||
      (node->IsLeafNode() && node->Windows.Size == 0 &&
       ImGui::FindWindowSettingsByID(ImHashStr("Timeline")) == nullptr)) {
    lay_out(dock, foreground);
    lays_out_ = false;
  }
  ImGui::DockSpaceOverViewport(dock, ImGui::GetMainViewport(), ImGuiDockNodeFlags_None);
  node = ImGui::DockBuilderGetCentralNode(dock);
  if (node == nullptr || node->Windows.Size > 0) return;
  const char* words = "Closed. Menu View opens each view again; Default layout shows all of them.";
  const ImVec2 size = ImGui::CalcTextSize(words);
  if (size.x > node->Size.x) return;
  node->HostWindow->DrawList->AddText(node->Rect().GetCenter() - size / 2, look().colours.dim,
                                      words);
}

// The answer stands first, top left; the timeline is the largest; history and tables lie below it;
// the knobs are at the right, what is chosen beneath them.
void Docks::lay_out(ImGuiID dock, Foreground& foreground) {
  ImGui::DockBuilderRemoveNode(dock);
  ImGui::DockBuilderAddNode(dock, static_cast<int>(ImGuiDockNodeFlags_DockSpace));
  ImGui::DockBuilderSetNodeSize(dock, ImGui::GetMainViewport()->WorkSize);
  ImGuiID rest = dock;
  // In a small window the sides keep what their texts need, also when it is made larger later on.
  const float width = ImGui::GetMainViewport()->WorkSize.x;
  const float right = std::clamp(px(320) / width, 0.2F, 0.4F);
  const float side = std::clamp(px(280) / (width * (1 - right)), 0.25F, 0.5F);
  const float height = ImGui::GetMainViewport()->WorkSize.y;
  const float down = height < px(800) ? 0.3F : 0.36F;
  // The host and a whole device below it.
  const float below = std::clamp(px(290) / (height * (1 - down)), 0.35F, 0.55F);
  // Side by side with the tables, which need room for their figures, or in one dock.
  const bool has_phases_apart = width * (1 - right) >= px(1300);
  ImGuiID knobs = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Right, right, nullptr, &rest);
  const ImGuiID details = ImGui::DockBuilderSplitNode(knobs, ImGuiDir_Down, 0.42F, nullptr, &knobs);
  ImGuiID bottom = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Down, down, nullptr, &rest);
  ImGuiID left = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Left, side, nullptr, &rest);
  const ImGuiID devices = ImGui::DockBuilderSplitNode(left, ImGuiDir_Down, below, nullptr, &left);
  const ImGuiID steps = ImGui::DockBuilderSplitNode(bottom, ImGuiDir_Left, 0.25F, nullptr, &bottom);
  const ImGuiID phases =
      has_phases_apart ? ImGui::DockBuilderSplitNode(bottom, ImGuiDir_Left, 0.36F, nullptr, &bottom)
                       : steps;
  ImGui::DockBuilderDockWindow("Overview", left);
  ImGui::DockBuilderDockWindow("Devices", devices);
  ImGui::DockBuilderDockWindow("Timeline", rest);
  ImGui::DockBuilderDockWindow("Knobs", knobs);
  ImGui::DockBuilderDockWindow("Details", details);
  ImGui::DockBuilderDockWindow("Steps", steps);
  ImGui::DockBuilderDockWindow(words::kPhases, phases);
  for (const char* name : {"Statistics", "Links", "Compare", "SQL", words::kRunInfo})
    ImGui::DockBuilderDockWindow(name, bottom);
  ImGui::DockBuilderFinish(dock);
  // In front of the tabs beside it; what was asked for before stays the last.
  foreground.bring_before_others({"Steps", "Statistics", "Overview"});
  docking_frames_ = 3;
}

// A layout that an older Sluice kept knows nothing of views that came later: they would float above
// the others. They become tabs beside Statistics, which stays in front.
void Docks::dock_new_views(const std::vector<std::unique_ptr<View>>& views,
                           Foreground& foreground) {
  const ImGuiWindowSettings* host = ImGui::FindWindowSettingsByID(ImHashStr("Statistics"));
  if (host == nullptr || host->DockId == 0) return;
  const ImGuiID dock = host->DockId;
  bool has_new = false;
  for (const std::unique_ptr<View>& view : views) {
    if (ImGui::FindWindowSettingsByID(ImHashStr(view->title())) != nullptr) continue;
    ImGui::DockBuilderDockWindow(view->title(), dock);
    has_new = true;
  }
  if (!has_new) return;
  foreground.bring_before_others({"Statistics"});
  docking_frames_ = 3;
}

void Docks::draw_views(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground,
                       Settings& settings) {
  std::string forward;
  if (docking_frames_ > 0) {
    docking_frames_ -= 1;
  } else {
    forward = foreground.take();
  }
  for (const std::unique_ptr<View>& view : views) {
    if (forward == view->title()) {
      view->is_open = true;
      ImGui::SetNextWindowFocus();
    }
    settings.note_view(view->title(), view->is_open);
    if (!view->is_open) continue;
    ImGui::SetNextWindowSize({px(720), px(420)}, ImGuiCond_FirstUseEver);
    // A view that appears stays behind the one that its dock had in front.
    if (ImGui::Begin(view->title(), &view->is_open, ImGuiWindowFlags_NoFocusOnAppearing))
      view->draw_content();
    ImGui::End();
  }
}

}  // namespace sluice::gui
