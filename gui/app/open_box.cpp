#include "gui/app/open_box.h"

#include <imgui.h>

#include "gui/app/window.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/text_input.h"

namespace sluice::gui {
namespace {

constexpr const char* kName = "Open a run";
constexpr double kLookSeconds = 0.5;  // until a file that appears is seen

}  // namespace

std::string OpenBox::draw() {
  if (is_opening_) {
    ImGui::OpenPopup(kName);
    if (path_.empty()) path_ = "out/";
  }
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5F, 0.5F});
  ImGui::SetNextWindowSize({560, 0}, ImGuiCond_Appearing);
  if (!ImGui::BeginPopup(kName)) return {};
  draw_title(kName);
  draw_empty("The path of a run database; runs write it to out/NAME/run.db.");
  if (is_opening_) ImGui::SetKeyboardFocusHere();
  is_opening_ = false;
  ImGui::SetNextItemWidth(-1);
  const bool is_entered = input_line("##path", "out/tiny/run.db", path_);
  look_at_typed_path();
  const std::shared_ptr<const TypedPath> seen = look_.result();
  if (seen != nullptr && seen->path == path_ && !seen->is_file)
    draw_note("There is no such file yet.");
  const bool opens = (ImGui::Button("Open") || is_entered) && !path_.empty();
  if (opens) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
  return opens ? path_ : "";
}

void OpenBox::look_at_typed_path() {
  const std::shared_ptr<const TypedPath> seen = look_.result();
  const bool is_new = seen == nullptr || seen->path != path_;
  const double now = ImGui::GetTime();
  if (look_.is_working() || (!is_new && now - looked_at_ < kLookSeconds)) return;
  looked_at_ = now;
  look_.begin([path = path_] { return look_at_path(path); }, Window::wake);
}

}  // namespace sluice::gui
