#include "gui/views/timeline_view.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/words.h"
#include "gui/data/verdict.h"
#include "gui/views/answer_track.h"
#include "gui/views/measured_panel.h"
#include "gui/views/path_track.h"
#include "gui/views/span_details.h"
#include "gui/views/timeline_ruler.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr float kStripHeight = 26;
constexpr double kWheelZoom = 1.25;
constexpr double kKeyZoom = 1.4;  // a key that is pressed once
// A held key: so long after its press it goes on, in so large a part of a press each frame.
constexpr float kHeldAfterSeconds = 0.2F;
constexpr float kHeldEverySeconds = 0.016F;
constexpr double kHeldPart = 0.12;
constexpr double kRestSeconds = 0.35;  // until rows may change
constexpr float kClickSlack = 3;

bool tool(const char* label, const char* tip, bool is_on = false) {
  if (is_on) ImGui::PushStyleColor(ImGuiCol_Button, with_alpha(look().colours.accent, 0.32F));
  const bool is_pressed = ImGui::Button(label);
  if (is_on) ImGui::PopStyleColor();
  ImGui::SetItemTooltip("%s", tip);
  ImGui::SameLine();
  return is_pressed;
}

std::string about(const RunFacts& facts, const Box& box) {
  std::string text;
  if (box.layer >= 0) text += fmt::format(", layer {}", box.layer);
  if (box.subgroup >= 0) text += fmt::format(", subgroup {}", box.subgroup);
  if (box.device >= 0) text += ", " + facts.device_name(box.device);
  return text;
}

// The track of a span that is drawn; none: it is too short to have a box of its own.
std::optional<std::int64_t> track_of(const TimelineWindow* window, std::int64_t span_id) {
  if (window == nullptr) return {};
  for (const TrackBoxes& track : window->tracks) {
    if (std::ranges::find(track.boxes, span_id, &Box::span_id) != track.boxes.end())
      return track.track_id;
  }
  return {};
}

// How much of a press a key is in this frame.
double held_amount(ImGuiKey key) {
  if (ImGui::IsKeyPressed(key, false)) return 1;
  return kHeldPart * ImGui::GetKeyPressedAmount(key, kHeldAfterSeconds, kHeldEverySeconds);
}

bool has_popup() {
  return ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
}

}  // namespace

TimelineView::TimelineView(const RunPieces& pieces, TimelineState& timeline,
                           const std::unique_ptr<RunNotes>& notes)
    : View(words::kTimeline),
      pieces_(pieces),
      timeline_(timeline),
      find_bar_(pieces, timeline),
      track_menu_(timeline),
      note_flags_(notes, pieces, timeline) {}
const char* TimelineView::help() const { return "What ran when, on every part of the machine"; }

void TimelineView::draw_content() {
  draw_tools();
  if (pieces_.run->span_count == 0 && pieces_.steps().empty()) {
    draw_empty("Nothing is recorded yet: the first step has not ended.");
    return;
  }
  if (pieces_.run->span_count == 0) {
    draw_empty(pieces_.verdict == nullptr ? "The steps are being looked at\u2026"
                                          : pieces_.verdict->why_empty);
    return;
  }
  if (timeline_.view.range().width() <= 0) return;
  draw_strip();
  draw_canvas();
}

void TimelineView::draw_tools() {
  const bool can_follow = pieces_.run->is_live;
  ImGui::BeginDisabled(!can_follow);
  if (tool("Follow", can_follow ? "L: keep to the end of the run" : "the run has ended",
           timeline_.view.follows() && can_follow))
    timeline_.view.toggle_following();
  ImGui::EndDisabled();
  if (tool("Fit run", "Home: the whole run")) timeline_.view.show_all();
  if (tool("Fit step", "T: the step under the centre; double click: the one under the cursor"))
    timeline_.view.show_middle_step();
  if (tool("Measure", "M: then dragging measures; Shift+drag does at any time",
           timeline_.measure.is_on()))
    timeline_.measure.toggle();
  find_bar_.draw();
  const std::string where = fmt::format(
      "{} \u00b7 window {}", time_text(timeline_.view.range().begin - pieces_.run->begin_ts),
      time_text(timeline_.view.range().width()));
  if (figure_size(where).x <= ImGui::GetContentRegionAvail().x) {
    draw_figure(where, look().colours.dim);
  } else {
    ImGui::NewLine();
  }
}

// The whole run, with the view as a frame that can be dragged.
void TimelineView::draw_strip() {
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  track_menu_.draw_field(px(kTrackLabelWidth - 8));
  const float left = corner.x + px(kTrackLabelWidth);
  ImGui::SetCursorScreenPos({left, corner.y});
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 size = {std::max(px(40), ImGui::GetContentRegionAvail().x), px(kStripHeight)};
  ImGui::InvisibleButton("##strip", size);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, {low.x + size.x, low.y + size.y}, with_alpha(look().colours.inset, 0.5F),
                      px(2));
  const Minimap* strip = pieces_.minimap.get();
  const TimeNs begin = strip == nullptr ? pieces_.run->begin_ts : strip->begin;
  const TimeNs all = std::max<TimeNs>(1, pieces_.run->end_ts - begin);
  const auto x_of = [&](TimeNs ts) {
    return low.x +
           size.x * static_cast<float>(static_cast<double>(ts - begin) / static_cast<double>(all));
  };
  if (strip != nullptr && !strip->columns.empty()) {
    const float width = (x_of(strip->end) - low.x) / static_cast<float>(strip->columns.size());
    for (std::size_t c = 0; c < strip->columns.size(); ++c) {
      const MinimapColumn& column = strip->columns[c];
      if (column.name_id < 0) continue;
      const float x = low.x + width * static_cast<float>(c);
      const float height = size.y * std::max(0.08F, column.busy);
      const ImU32 colour = stage_colour(pieces_.facts().stage_colour(column.name_id));
      list->AddRectFilled({x, low.y + size.y - height}, {x + width + 0.5F, low.y + size.y},
                          with_alpha(colour, 0.8F));
    }
  }
  for (const ChangeMark& change : pieces_.facts().changes) {
    const std::optional<TimeNs> ts = begin_of(change, pieces_.steps());
    if (!ts) continue;
    const float x = std::floor(x_of(*ts));
    list->AddLine({x, low.y}, {x, low.y + size.y}, look().colours.amber, px(1));
  }
  const float from = std::clamp(x_of(timeline_.view.range().begin), low.x, low.x + size.x);
  const float to = std::clamp(x_of(timeline_.view.range().end), from, low.x + size.x);
  const ImU32 accent = look().colours.accent;
  list->AddRectFilled({from, low.y}, {to, low.y + size.y}, with_alpha(accent, 0.18F));
  list->AddRect({from, low.y}, {std::max(to, from + px(2)), low.y + size.y}, accent, 0, px(1));
  if (!ImGui::IsItemActive()) {
    strip_grab_ = -1;
    return;
  }
  const float mouse = ImGui::GetIO().MousePos.x;
  if (strip_grab_ < 0) strip_grab_ = mouse >= from && mouse <= to ? mouse - from : (to - from) / 2;
  const double share = static_cast<double>((mouse - strip_grab_ - low.x) / size.x);
  const TimeNs at = begin + static_cast<TimeNs>(share * static_cast<double>(all));
  timeline_.view.pan(at - timeline_.view.range().begin);
}

void TimelineView::draw_canvas() {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float bar_width = ImGui::GetStyle().ScrollbarSize;
  const ImVec2 size = {std::max(px(220), room.x - bar_width), std::max(px(80), room.y)};
  ImGui::InvisibleButton("##canvas", size, ImGuiButtonFlags_MouseButtonLeft);
  const float ruler = ruler_height(pieces_.facts());
  const float answer = timeline_.answer_track == nullptr ? 0 : px(kAnswerHeight);
  const float axis = ruler + answer + px(kPathHeight);
  TimelinePlace place{.low = {at.x + px(kTrackLabelWidth), at.y + axis},
                      .high = {at.x + size.x, at.y + size.y},
                      .label_width = px(kTrackLabelWidth),
                      .axis_height = axis,
                      .path_height = px(kPathHeight),
                      .answer_height = answer,
                      .view = timeline_.view.range()};
  const bool is_hovered = ImGui::IsItemHovered();
  if (is_hovered) {
    ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
    take_wheel(place);
  }
  take_drag(place);
  take_keys(place, is_hovered);
  const TimelineLayout layout = lay_out(place, is_hovered);
  const float scroll_max = std::max(0.0F, layout.height - place.rows_height());
  timeline_.rows.scroll_to(std::clamp(timeline_.rows.scroll(), 0.0F, scroll_max));
  place.scroll_y = timeline_.rows.scroll();
  place.view = timeline_.view.range();
  timeline_.picture.ask_for(timeline_.view, place.high.x - place.low.x);

  TimelinePainter painter(pieces_, timeline_, layout, place);
  draw_picture(painter, place, at, is_hovered);
  const bool is_on_flag = note_flags_.draw_flags(place, is_hovered);
  if (is_hovered && !is_on_flag) take_mouse(painter, layout, place);
  track_menu_.draw();
  note_flags_.draw_box();
  draw_scroll_bar(layout, place, bar_width);
  draw_measured_panel(pieces_, timeline_, {place.high.x - px(12), place.high.y - px(12)});
}

void TimelineView::draw_picture(TimelinePainter& painter, const TimelinePlace& place, ImVec2 at,
                                bool is_hovered) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushClipRect(at, place.high, true);
  TimelineRuler ruler(pieces_, place);
  const PathTrack path(pieces_, timeline_, place);
  ruler.draw_times();
  path.draw();
  AnswerTrack(timeline_, place).draw();
  painter.draw_labels();
  painter.draw_rows();
  ruler.draw_steps();
  ruler.draw_changes(is_hovered && drag_ == Drag::none);
  painter.draw_chosen();
  painter.draw_measured();
  if (pieces_.timeline == nullptr) {
    list->AddText({place.low.x + px(12), place.low.y + px(12)}, look().colours.dim,
                  "The operations are being read\u2026");
  }
  if (drag_ == Drag::zoom) {
    list->AddRectFilled({place.x(drag_ts_), place.low.y}, {ImGui::GetIO().MousePos.x, place.high.y},
                        with_alpha(look().colours.amber, 0.15F));
  }
  ImGui::PopClipRect();
}

// Rows that are folded away or come back keep the row under the mouse, or else the first one, where
// it is. A track that somebody asked for has its row, and in the middle if it cannot be seen.
TimelineLayout TimelineView::lay_out(const TimelinePlace& place, bool is_hovered) {
  TimelineFolding& folding = timeline_.rows.folding();
  const RunSnapshot& run = *pieces_.run;
  TimelineLayout layout = layout_of(run, folding, timeline_.rows.choice());
  const std::optional<std::int64_t> wanted = timeline_.rows.take_wanted();
  if (folding.update(run, place.view.begin, place.view.end, is_at_rest())) {
    const TimelineLayout before =
        std::exchange(layout, layout_of(run, folding, timeline_.rows.choice()));
    const float held = is_hovered ? ImGui::GetIO().MousePos.y - place.low.y : 0;
    const float scroll = timeline_.rows.scroll();
    timeline_.rows.scroll_to(scroll + moved_down(before, layout, held + scroll));
  }
  if (folding.awaits_rest() && timeline_.motion() == TimelineState::Motion::none)
    timeline_.set_motion(TimelineState::Motion::settles);
  if (!wanted) return layout;
  folding.reveal(*run.facts, *wanted);
  const TrackFacts* track = run.facts->track(*wanted);
  TrackChoice& choice = timeline_.rows.choice();
  if (track != nullptr && !choice.shows(track->group, track->name)) choice.set_text("");
  layout = layout_of(run, folding, timeline_.rows.choice());
  if (const TimelineRow* row = layout.row_of(*wanted); row != nullptr) {
    const bool is_seen = row->y >= timeline_.rows.scroll() &&
                         row->y + row->height <= timeline_.rows.scroll() + place.rows_height();
    if (!is_seen) timeline_.rows.scroll_to(row->y + row->height / 2 - place.rows_height() / 2);
  }
  return layout;
}

bool TimelineView::is_at_rest() {
  const double now = ImGui::GetTime();
  const bool is_moved = !timeline_.view.follows() && timeline_.view.range() != seen_view_;
  seen_view_ = timeline_.view.range();
  if (is_moved || drag_ != Drag::none || strip_grab_ >= 0) moved_at_ = now;
  return now - moved_at_ >= kRestSeconds;
}

void TimelineView::draw_scroll_bar(const TimelineLayout& layout, const TimelinePlace& place,
                                   float width) {
  const ImRect bar({place.high.x, place.low.y}, {place.high.x + width, place.high.y});
  const auto seen = static_cast<ImS64>(place.rows_height());
  const auto all = static_cast<ImS64>(std::ceil(layout.height));
  if (all <= seen) return;
  auto scroll = static_cast<ImS64>(place.scroll_y);
  const ImS64 before = scroll;
  ImGui::ScrollbarEx(bar, ImGui::GetID("##rows"), ImGuiAxis_Y, &scroll, seen, all);
  if (scroll != before) timeline_.rows.scroll_to(static_cast<float>(scroll));
}

void TimelineView::take_wheel(const TimelinePlace& place) {
  const ImGuiIO& io = ImGui::GetIO();
  const double width = static_cast<double>(timeline_.view.range().width());
  if (io.MouseWheelH != 0) timeline_.view.pan(static_cast<TimeNs>(-io.MouseWheelH * 0.1 * width));
  if (io.MouseWheel == 0) return;
  const bool is_over_labels = io.MousePos.x < place.low.x;
  if (io.KeyShift || (is_over_labels && !io.KeyCtrl)) {
    timeline_.rows.scroll_to(timeline_.rows.scroll() - io.MouseWheel * px(48));
    return;
  }
  timeline_.view.zoom(std::pow(kWheelZoom, -static_cast<double>(io.MouseWheel)),
                      place.ts(std::max(place.low.x, io.MousePos.x)));
}

void TimelineView::take_drag(const TimelinePlace& place) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemActivated() && io.MousePos.x >= place.low.x) {
    drag_ = io.KeyCtrl                                 ? Drag::zoom
            : io.KeyShift || timeline_.measure.is_on() ? Drag::measure
                                                       : Drag::pan;
    drag_ts_ = place.ts(io.MousePos.x);
    drag_view_ = timeline_.view.range();
    drag_scroll_ = timeline_.rows.scroll();
  }
  if (drag_ == Drag::none) return;
  const ImVec2 moved = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, px(kClickSlack));
  const bool is_moved = moved.x != 0 || moved.y != 0;
  const TimeNs here = place.ts(std::clamp(io.MousePos.x, place.low.x, place.high.x));
  const TimeRange range{std::min(drag_ts_, here), std::max(drag_ts_, here)};
  if (drag_ == Drag::pan && is_moved) {
    const auto by = static_cast<TimeNs>(static_cast<double>(moved.x) / place.pixels_a_ns());
    timeline_.view.set({drag_view_.begin - by, drag_view_.end - by});
    timeline_.rows.scroll_to(drag_scroll_ - moved.y);
  }
  if (drag_ == Drag::measure && is_moved) timeline_.measure.set(range);
  if (ImGui::IsItemActive()) return;
  if (drag_ == Drag::measure && is_moved) timeline_.explain_range(range);
  if (drag_ == Drag::zoom && range.width() > 0 && place.x(range.end) - place.x(range.begin) > 4)
    timeline_.view.set(range);
  drag_ = Drag::none;
}

// W A S D wherever the mouse is, since no other view takes letters; arrows, which move through the
// items of any view, where the timeline has the keyboard. A held key goes on in small steps.
void TimelineView::take_keys(const TimelinePlace& place, bool is_hovered) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.WantTextInput || io.KeyCtrl || io.KeyAlt || io.KeySuper || has_popup()) return;
  const bool has_keyboard = ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows);
  const auto held = [&](ImGuiKey letter, std::initializer_list<ImGuiKey> others) {
    double amount = held_amount(letter);
    for (const ImGuiKey key : others) amount += has_keyboard ? held_amount(key) : 0;
    return amount;
  };
  const bool is_at_cursor = is_hovered && io.MousePos.x >= place.low.x;
  const TimeNs around = is_at_cursor ? place.ts(io.MousePos.x) : timeline_.view.middle();
  const double nearer =
      held(ImGuiKey_W, {ImGuiKey_UpArrow, ImGuiKey_Equal, ImGuiKey_KeypadAdd}) -
      held(ImGuiKey_S, {ImGuiKey_DownArrow, ImGuiKey_Minus, ImGuiKey_KeypadSubtract});
  const double later =
      held(ImGuiKey_D, {ImGuiKey_RightArrow}) - held(ImGuiKey_A, {ImGuiKey_LeftArrow});
  if (nearer != 0) timeline_.view.zoom(std::pow(kKeyZoom, -nearer), around);
  if (later != 0)
    timeline_.view.pan(
        static_cast<TimeNs>(later * static_cast<double>(timeline_.view.range().width()) / 8));
  for (const ImGuiKey key : {ImGuiKey_W, ImGuiKey_A, ImGuiKey_S, ImGuiKey_D}) {
    if (ImGui::IsKeyDown(key)) timeline_.set_motion(TimelineState::Motion::moves);
  }
}

void TimelineView::take_mouse(const TimelinePainter& painter, const TimelineLayout& layout,
                              const TimelinePlace& place) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const TimelineRow* row =
      mouse.y < place.low.y ? nullptr : layout.row_at(mouse.y - place.low.y + place.scroll_y);
  const HoveredBox hovered = painter.box_at(mouse);
  const PathTrack path(pieces_, timeline_, place);
  const PathTrack::PieceAt piece = path.piece_at(mouse);
  const AnswerTrack answer(timeline_, place);
  if (drag_ == Drag::none) {
    answer.draw_tip(mouse);
    draw_box_tip(hovered);
    path.draw_tip(mouse);
    draw_summary_tip(painter.summary_at(mouse));
    if (mouse.x < place.low.x && row != nullptr) draw_away_tip(*row);
  }
  if (ImGui::IsMouseReleased(ImGuiMouseButton_Right) && mouse.x < place.low.x && row != nullptr) {
    track_menu_.open(*row);
  }
  const bool is_click =
      ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
      ImGui::GetIO().MouseDragMaxDistanceSqr[0] <= px(kClickSlack) * px(kClickSlack);
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && piece.piece != nullptr &&
      piece.piece->span_id > 0) {
    drag_ = Drag::none;
    choose_of_path(piece.piece->span_id);
    timeline_.fit_selection();
  } else if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && mouse.x >= place.low.x) {
    fit_under_cursor(hovered, place);
  } else if (is_click && answer.has(mouse)) {
    answer.click(mouse);
  } else if (is_click && mouse.x < place.low.x) {
    if (row != nullptr && row->has_rows) timeline_.rows.folding().toggle(row->group);
  } else if (is_click && ImGui::GetIO().MouseClickedLastCount[0] < 2 && piece.piece != nullptr) {
    choose_of_path(std::max<std::int64_t>(0, piece.piece->span_id));
  } else if (is_click && ImGui::GetIO().MouseClickedLastCount[0] < 2) {
    const bool is_span = hovered.box != nullptr && hovered.box->is_span();
    timeline_.choose(is_span ? hovered.box->span_id : 0);
  }
}

void TimelineView::choose_of_path(std::int64_t span_id) {
  timeline_.choose(span_id);
  const std::optional<std::int64_t> track = track_of(pieces_.timeline.get(), span_id);
  if (track && span_id > 0) timeline_.rows.bring(*track);
}

// A span, or what is drawn as one box; the step under the cursor where there is none, also on the
// ruler.
void TimelineView::fit_under_cursor(const HoveredBox& hovered, const TimelinePlace& place) {
  drag_ = Drag::none;
  if (hovered.box != nullptr) {
    timeline_.view.fit({hovered.box->ts, hovered.box->end_ts});
    return;
  }
  const rundb::StepRow* step =
      step_at_or_after(pieces_.steps(), place.ts(ImGui::GetIO().MousePos.x));
  if (step != nullptr) timeline_.show_step(*step);
}

void TimelineView::draw_summary_tip(const TimelinePainter::HoveredSummary& summary) const {
  if (summary.row == nullptr || !ImGui::BeginTooltip()) return;
  const double busy = static_cast<double>(summary.column.busy_tracks);
  const auto count = static_cast<double>(summary.row->members.size());
  ImGui::Text("%s: %.1f of its %.0f tracks busy here, %s", summary.row->group.c_str(), busy, count,
              percent_text(busy / count).c_str());
  if (summary.column.name_id >= 0)
    ImGui::Text("most of it %s", pieces_.facts().string_of(summary.column.name_id).c_str());
  ImGui::EndTooltip();
}

// A word about rows that are not there.
void TimelineView::draw_away_tip(const TimelineRow& row) const {
  if (row.away.empty() || !ImGui::BeginTooltip()) return;
  ImGui::TextUnformatted("Folded away, for nothing of these is near what is shown:");
  if (ImGui::BeginTable("##away", 2)) {
    for (const std::int64_t id : row.away) {
      const TrackFacts* track = pieces_.facts().track(id);
      const auto used = pieces_.run->used_tracks.find(id);
      if (track == nullptr || used == pieces_.run->used_tracks.end()) continue;
      draw_pair(track->name.c_str(),
                "until " + time_text(used->second.end_ts - pieces_.run->begin_ts));
    }
    ImGui::EndTable();
  }
  draw_note("they come back where they have something; I keeps all rows");
  ImGui::EndTooltip();
}

void TimelineView::draw_box_tip(const HoveredBox& hovered) const {
  if (hovered.box == nullptr || !ImGui::BeginTooltip()) return;
  const Box& box = *hovered.box;
  const std::string& name = pieces_.facts().string_of(box.name_id);
  if (!box.is_span()) {
    ImGui::Text("%s: busy %s of these %s. Double click: fit.", name.c_str(),
                time_text(box.busy_ns).c_str(), time_text(box.end_ts - box.ts).c_str());
    if (box.count > 1) draw_note(grouped_text(box.count) + " spans");
    ImGui::EndTooltip();
    return;
  }
  ImGui::TextUnformatted((name + about(pieces_.facts(), box)).c_str());
  if (ImGui::BeginTable("##tip", 2)) {
    draw_pair("time", time_text(box.end_ts - box.ts));
    if (box.bytes > 0) {
      draw_pair("bytes", bytes_text(static_cast<double>(box.bytes)));
      if (box.padding_bytes > 0)
        draw_pair("and padding", bytes_text(static_cast<double>(box.padding_bytes)));
      const auto dur = static_cast<double>(std::max<TimeNs>(1, box.end_ts - box.ts));
      const double rate = static_cast<double>(box.bytes + box.padding_bytes) * 1e9 / dur;
      const double scale = pieces_.facts().info.time_scale();
      const std::string what =
          scale == 1 ? "bandwidth" : fmt::format("bandwidth, clock \u00d7{:g}", scale);
      draw_pair(what.c_str(), hovered.row->limit_bytes_per_s > 0
                                  ? fmt::format("{} alone; limit {}", rate_text(rate),
                                                rate_text(hovered.row->limit_bytes_per_s))
                                  : rate_text(rate));
    }
    draw_pair("waited before", time_text(std::max<TimeNs>(0, box.ts - box.submit_ts)));
    const rundb::StepRow* step = step_at(pieces_.steps(), box.ts);
    if (step != nullptr) draw_pair("step", step_text(step->id));
    if (box.step >= 0 && (step == nullptr || step->id != box.step))
      draw_pair("work of step", step_text(box.step));
    ImGui::EndTable();
  }
  if (box.is_failed) draw_coloured(look().colours.red, "failed", false);
  ImGui::EndTooltip();
}

}  // namespace sluice::gui
