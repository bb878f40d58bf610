#include "gui/views/note_flags.h"

#include <fmt/format.h>
#include <imgui.h>

#include "gui/data/run_notes.h"
#include "gui/data/span_lookup.h"
#include "gui/views/run_pieces.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/text_input.h"

namespace sluice::gui {
namespace {

constexpr float kFlag = 7;  // half of its width

void draw_flag(ImDrawList* list, float x, const TimelinePlace& place) {
  const float top = place.low.y - place.axis_height;
  list->AddTriangleFilled({x - px(kFlag), top}, {x + px(kFlag), top}, {x, top + px(kFlag * 1.6F)},
                          look().colours.green);
  list->AddLine({x, top}, {x, place.high.y}, with_alpha(look().colours.green, 0.5F), px(1));
}

}  // namespace

bool NoteFlags::draw_flags(const TimelinePlace& place, bool is_hovered) {
  if (notes_ == nullptr) return false;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const std::vector<RunNote>& notes = notes_->all();
  bool is_on_flag = false;
  for (std::size_t n = 0; n < notes.size(); ++n) {
    if (notes[n].ts < place.view.begin || notes[n].ts > place.view.end) continue;
    const float x = place.x(notes[n].ts);
    draw_flag(list, x, place);
    const float top = place.low.y - place.axis_height;
    const bool is_on = is_hovered && std::abs(mouse.x - x) <= px(kFlag) && mouse.y >= top &&
                       mouse.y <= top + px(kFlag * 1.6F);
    if (!is_on || is_on_flag) continue;
    is_on_flag = true;
    ImGui::SetTooltip("%s", notes[n].text.c_str());
    if (ImGui::IsMouseReleased(ImGuiMouseButton_Left)) begin_change(n);
  }
  return is_on_flag;
}

// At the chosen span, else in the middle of the view.
void NoteFlags::begin_new() {
  const ChosenSpan* chosen = pieces_.chosen.get();
  const bool has_span =
      chosen != nullptr && chosen->row.id == timeline_.chosen_span() && chosen->row.id != 0;
  index_ = -1;
  ts_ = has_span ? chosen->row.ts : timeline_.view.middle();
  span_id_ = has_span ? chosen->row.id : 0;
  text_.clear();
  is_opening_ = true;
}

void NoteFlags::begin_change(std::size_t index) {
  const RunNote& note = notes_->all()[index];
  index_ = static_cast<std::int64_t>(index);
  ts_ = note.ts;
  span_id_ = note.span_id;
  text_ = note.text;
  is_opening_ = true;
  if (span_id_ != 0) timeline_.choose(span_id_);
}

std::string NoteFlags::title() const {
  const std::string at = time_text(ts_ - pieces_.run->begin_ts);
  return span_id_ == 0 ? fmt::format("Note at {}", at)
                       : fmt::format("Note about the span at {}", at);
}

void NoteFlags::draw_box() {
  if (notes_ == nullptr || pieces_.run == nullptr) return;
  if (timeline_.take_note_wish()) begin_new();
  const bool is_opened = is_opening_;
  if (is_opened) ImGui::OpenPopup("##note");
  is_opening_ = false;
  if (!ImGui::BeginPopup("##note")) return;
  draw_title(title());
  if (!notes_->problem().empty()) {
    draw_coloured(look().colours.red, notes_->problem());
    ImGui::EndPopup();
    return;
  }
  if (is_opened) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(px(320));
  const bool is_entered = input_line("##text", "What is to be seen here", text_);
  if (ImGui::Button("Keep") || is_entered) keep(text_);
  if (index_ >= 0) {
    ImGui::SameLine();
    if (ImGui::Button("Remove")) keep("");
  }
  ImGui::EndPopup();
}

void NoteFlags::keep(const std::string& text) {
  if (index_ >= 0) {
    notes_->change(static_cast<std::size_t>(index_), text);
  } else {
    notes_->add({ts_, span_id_, text});
  }
  ImGui::CloseCurrentPopup();
}

}  // namespace sluice::gui
