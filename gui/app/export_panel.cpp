#include "gui/app/export_panel.h"

#include "gui/app/notice.h"
#include "gui/app/window.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {

void ExportPanel::begin(const std::string& database, ExportForm form) {
  is_open_ = true;
  exported_.forget();
  exported_.begin(
      [program = program_, database, form] { return export_run(program, database, form); },
      Window::wake);
}

bool ExportPanel::dismiss() {
  if (!is_open_ || exported_.result() == nullptr) return false;
  is_open_ = false;
  return true;
}

void ExportPanel::draw() {
  if (!is_open_) return;
  const std::shared_ptr<const Exported> exported = exported_.result();
  const bool is_bad = exported != nullptr && !exported->problem.empty();
  const Notice notice("Export", px(620), px(40), is_bad ? look().colours.red : look().colours.line);
  if (!notice.is_shown()) return;
  if (exported == nullptr) {
    draw_title("Exporting the run");
    draw_note("A process of low priority does it.");
    return;
  }
  draw_title(is_bad ? "The run was not exported" : "The run was exported");
  draw_coloured(look().colours.text, is_bad ? exported->problem : exported->path);
  if (ImGui::Button("Close")) is_open_ = false;
  if (is_bad) return;
  ImGui::SameLine();
  if (ImGui::Button("Copy the path")) ImGui::SetClipboardText(exported->path.c_str());
}

}  // namespace sluice::gui
