#include "gui/views/path_track.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/data/step_paths.h"
#include "gui/views/run_colours.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr const char* kTooWide = "zoom in to 30 steps to see it";

TimeNs end_of(const analyze::PathPiece& piece) { return piece.ts + piece.dur; }

}  // namespace

const char* PathTrack::why_empty() const {
  const StepPaths* paths = pieces_.paths.get();
  if (paths == nullptr)
    return pieces_.steps().empty() ? "no step has ended" : "being worked out\u2026";
  if (paths->is_too_wide) return kTooWide;
  return nullptr;
}

void PathTrack::draw() const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_label(list);
  list->PushClipRect({place_.low.x, top()}, {place_.high.x, place_.low.y}, true);
  list->AddRectFilled({place_.low.x, top()}, {place_.high.x, bottom()},
                      with_alpha(look().colours.inset, 0.5F));
  if (const char* why = why_empty()) {
    const FontScope font(look().text, Look::kSmallSize);
    const float y = (top() + bottom() - ImGui::GetFontSize()) / 2;
    list->AddText({place_.low.x + px(6), y}, look().colours.dim, why);
  } else {
    for (const std::shared_ptr<const StepPath>& path : pieces_.paths->steps) {
      if (path->end_ts > place_.view.begin && path->ts < place_.view.end) draw_step(list, *path);
    }
  }
  list->PopClipRect();
}

void PathTrack::draw_label(ImDrawList* list) const {
  const FontScope font(look().bold, Look::kTextSize - 1);
  const ImVec2 low = {place_.low.x - place_.label_width, top()};
  const std::optional<analyze::Cause> cause = timeline_.marked_cause();
  const std::string text =
      cause ? fmt::format("path: {}", analyze::cause_label(*cause)) : "critical path";
  const float y = (top() + bottom() - ImGui::GetFontSize()) / 2;
  list->PushClipRect({low.x, low.y - px(2)}, {place_.low.x - px(6), place_.low.y}, true);
  list->AddText({low.x, y}, cause ? look().colours.amber : look().colours.text, text.c_str());
  list->PopClipRect();
}

// About as many rectangles as columns: of the pieces that end within the column that was just
// filled nothing could be seen.
void PathTrack::draw_step(ImDrawList* list, const StepPath& path) const {
  const auto first = std::ranges::upper_bound(path.pieces, place_.view.begin, {}, end_of);
  for (auto piece = first; piece != path.pieces.end() && piece->ts < place_.view.end;) {
    const float left = std::max(place_.x(piece->ts), place_.low.x);
    const float right = std::max(std::min(place_.x(end_of(*piece)), place_.high.x), left + 1);
    ImU32 colour = colour_of(piece->cause);
    if (timeline_.marked_cause() && timeline_.marked_cause() != piece->cause)
      colour = with_alpha(colour, 0.16F);
    list->AddRectFilled({left, top()}, {right, bottom()}, colour);
    const TimeNs filled_ts = std::max(end_of(*piece), place_.ts(right));
    piece = std::ranges::upper_bound(piece, path.pieces.end(), filled_ts, {}, end_of);
  }
}

PathTrack::PieceAt PathTrack::piece_at(ImVec2 mouse) const {
  if (why_empty() != nullptr || mouse.x < place_.low.x || mouse.x > place_.high.x ||
      mouse.y < top() || mouse.y >= place_.low.y)
    return {};
  const TimeNs ts = place_.ts(mouse.x);
  for (const std::shared_ptr<const StepPath>& path : pieces_.paths->steps) {
    if (ts < path->ts || ts >= path->end_ts) continue;
    const auto piece = std::ranges::upper_bound(path->pieces, ts, {}, end_of);
    if (piece != path->pieces.end()) return {&*piece, path.get()};
  }
  return {};
}

void PathTrack::draw_tip(ImVec2 mouse) const {
  const PieceAt at = piece_at(mouse);
  if (at.piece == nullptr || !ImGui::BeginTooltip()) return;
  draw_dot(colour_of(at.piece->cause));
  ImGui::SameLine();
  ImGui::Text("%s: %s", std::string(analyze::cause_label(at.piece->cause)).c_str(),
              std::string(analyze::cause_phrase(at.piece->cause)).c_str());
  if (ImGui::BeginTable("##tip", 2)) {
    draw_pair("on the critical path of step", step_text(at.step->step));
    draw_pair("for", time_text(at.piece->dur));
    ImGui::EndTable();
  }
  draw_note(at.piece->span_id > 0 ? "click: choose the span" : "no span was running");
  ImGui::EndTooltip();
}

}  // namespace sluice::gui
