#include "gui/app/export_panel.h"

#include "gui/app/notice.h"
#include "gui/app/window.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {

void ExportPanel::ask(const ExportSource& source, ExportForm form,
                      std::vector<ExportChoice> choices) {
  is_open_ = true;
  source_ = source;
  form_ = form;
  choices_ = std::move(choices);
  chosen_ = 0;
}

void ExportPanel::begin(const ExportSource& source, ExportForm form, const ExportSteps& steps) {
  is_open_ = true;
  choices_.clear();
  exported_.forget();
  exported_.begin([program = program_, source, form,
                   steps] { return export_run(program, source, form, steps); },
                  Window::wake);
}

bool ExportPanel::dismiss() {
  if (!is_open_ || exported_.result() == nullptr) return false;
  is_open_ = false;
  return true;
}

void ExportPanel::draw() {
  if (!is_open_) return;
  if (choices_.empty()) {
    draw_outcome(exported_.result().get());
  } else {
    draw_question();
  }
}

void ExportPanel::draw_question() {
  const Notice notice("Export", Notice::Place::panel, look().colours.line);
  if (!notice.is_shown()) return;
  draw_title(form_ == ExportForm::trace ? "Export a trace for Perfetto"
                                        : "Export the tables as CSV");
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (ImGui::RadioButton(choices_[i].name.c_str(), i == chosen_)) chosen_ = i;
  }
  draw_note("Steps are exported whole, with all that was under way in them.");
  if (ImGui::Button("Export")) begin(source_, form_, ExportSteps(choices_[chosen_].steps));
  ImGui::SameLine();
  if (ImGui::Button("Cancel")) {
    choices_.clear();
    is_open_ = false;
  }
}

void ExportPanel::draw_outcome(const Exported* exported) {
  const bool is_bad = exported != nullptr && !exported->problem.empty();
  Notice notice("Export", Notice::Place::bar, is_bad ? look().colours.red : look().colours.line);
  if (!notice.is_shown()) return;
  if (exported == nullptr) {
    notice.say("Exporting the run", "Runs in the background.");
    return;
  }
  notice.say(is_bad ? "The run was not exported" : "The run was exported",
             is_bad ? exported->problem : exported->path);
  if (notice.button("Close")) is_open_ = false;
  if (!is_bad && notice.button("Copy the path")) ImGui::SetClipboardText(exported->path.c_str());
}

}  // namespace sluice::gui
