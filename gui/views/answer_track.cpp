#include "gui/views/answer_track.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/data/sql_console.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr float kNarrowest = 2;  // pixels, before scaling: an instant is seen, too
constexpr float kReach = 3;      // how far beside a piece the mouse is on it
constexpr std::size_t kTipValues = 8;
constexpr std::size_t kTipLetters = 60;

std::string shortened(const std::string& text) {
  if (text.size() <= kTipLetters) return text;
  std::size_t size = kTipLetters;  // but no part of a letter of several bytes
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size) + "\u2026";
}

}  // namespace

float AnswerTrack::left_of(const SqlPiece& piece) const {
  return std::max(place_.x(piece.ts), place_.low.x);
}

float AnswerTrack::right_of(const SqlPiece& piece) const {
  return std::max(std::min(place_.x(piece.ts + piece.dur), place_.high.x),
                  left_of(piece) + px(kNarrowest));
}

void AnswerTrack::draw() const {
  const SqlAnswer* answer = timeline_.answer_track.get();
  if (answer == nullptr) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const FontScope font(look().bold, Look::kTextSize - 1);
  const float y = (top() + bottom() - ImGui::GetFontSize()) / 2;
  const std::string label = fmt::format("SQL: {} rows", answer->pieces.size());
  list->PushClipRect({place_.low.x - place_.label_width, top() - px(2)},
                     {place_.low.x - px(6), bottom() + px(2)}, true);
  list->AddText({place_.low.x - place_.label_width, y}, look().colours.text, label.c_str());
  list->PopClipRect();
  list->PushClipRect({place_.low.x, top()}, {place_.high.x, bottom()}, true);
  list->AddRectFilled({place_.low.x, top()}, {place_.high.x, bottom()},
                      with_alpha(look().colours.inset, 0.5F));
  for (const SqlPiece& piece : answer->pieces) {
    if (piece.ts >= place_.view.end || piece.ts + piece.dur < place_.view.begin) continue;
    list->AddRectFilled({left_of(piece), top()}, {right_of(piece), bottom()},
                        with_alpha(look().colours.accent, 0.8F));
    // Rows that follow one another at once stay apart.
    list->AddLine({left_of(piece), top()}, {left_of(piece), bottom()}, look().colours.panel);
  }
  list->PopClipRect();
}

bool AnswerTrack::has(ImVec2 mouse) const {
  return timeline_.answer_track != nullptr && mouse.y >= top() && mouse.y < bottom() &&
         mouse.x >= place_.low.x - place_.label_width && mouse.x < place_.high.x;
}

const SqlPiece* AnswerTrack::piece_at(ImVec2 mouse) const {
  if (!has(mouse) || mouse.x < place_.low.x) return nullptr;
  const SqlPiece* found = nullptr;
  for (const SqlPiece& piece : timeline_.answer_track->pieces) {
    if (mouse.x >= left_of(piece) - px(kReach) && mouse.x <= right_of(piece) + px(kReach) &&
        piece.ts < place_.view.end && piece.ts + piece.dur >= place_.view.begin)
      found = &piece;  // the last one is drawn above the others
  }
  return found;
}

void AnswerTrack::draw_tip(ImVec2 mouse) const {
  if (!has(mouse)) return;
  const SqlAnswer& answer = *timeline_.answer_track;
  const SqlPiece* piece = piece_at(mouse);
  if (piece == nullptr && mouse.x >= place_.low.x) return;
  if (!ImGui::BeginTooltip()) return;
  if (piece == nullptr) {
    ImGui::TextUnformatted(answer.sql.c_str());
    draw_note("click: put the track away");
  } else if (ImGui::BeginTable("##row", 2)) {
    const std::vector<std::string>& row = answer.rows[piece->row];
    for (std::size_t c = 0; c < std::min({row.size(), answer.columns.size(), kTipValues}); ++c)
      draw_pair(answer.columns[c].c_str(), shortened(row[c]));
    ImGui::EndTable();
  }
  ImGui::EndTooltip();
}

void AnswerTrack::click(ImVec2 mouse) const {
  if (mouse.x < place_.low.x) {
    timeline_.answer_track.reset();
    return;
  }
  const SqlPiece* piece = piece_at(mouse);
  if (piece == nullptr) return;
  if (const auto span_id = timeline_.answer_track->span_id_of(piece->row)) {
    timeline_.go_to(*span_id);
  } else {
    timeline_.measure.set({piece->ts, piece->ts + std::max<TimeNs>(1, piece->dur)});
  }
}

}  // namespace sluice::gui
