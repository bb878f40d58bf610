#include "gui/views/timeline_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "gui/views/path_track.h"
#include "gui/views/span_details.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/text_input.h"

namespace sluice::gui {
namespace {

constexpr float kLabelWidth = 140;
constexpr float kAxisHeight = 34 + kPathHeight;
constexpr float kStripHeight = 26;
constexpr double kWheelZoom = 1.25;
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

// Of a span that is drawn; none: it is too short to have a box of its own.
std::optional<std::int64_t> track_of(const TimelineWindow* window, std::int64_t span_id) {
  if (window == nullptr) return {};
  for (const TrackBoxes& track : window->tracks) {
    if (std::ranges::find(track.boxes, span_id, &Box::span_id) != track.boxes.end())
      return track.track_id;
  }
  return {};
}

}  // namespace

TimelineView::TimelineView(const RunPieces& pieces, TimelineState& timeline)
    : View("Timeline"), pieces_(pieces), timeline_(timeline) {}
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
  if (timeline_.view().width() <= 0) return;
  draw_strip();
  draw_canvas();
}

void TimelineView::draw_tools() {
  const bool can_follow = pieces_.run->is_live;
  ImGui::BeginDisabled(!can_follow);
  if (tool("Follow", can_follow ? "F: keep to the end of the run" : "the run has ended",
           timeline_.follows() && can_follow))
    timeline_.toggle_following();
  ImGui::EndDisabled();
  if (tool("Fit run", "Home: all of the run")) timeline_.show_all();
  if (tool("Fit step", "S: the step in the middle")) timeline_.show_middle_step();
  if (tool("Measure", "M: then dragging measures; Shift+drag does at any time",
           timeline_.measures()))
    timeline_.toggle_measuring();
  draw_search();
  const std::string where =
      fmt::format("{} \u00b7 window {}", time_text(timeline_.view().begin - pieces_.run->begin_ts),
                  time_text(timeline_.view().width()));
  draw_figure(where, look().colours.dim);
}

void TimelineView::draw_search() {
  ImGui::SetNextItemWidth(px(170));
  if (timeline_.take_search_focus()) ImGui::SetKeyboardFocusHere();
  if (search_text_ != timeline_.search() && !ImGui::IsAnyItemActive())
    search_text_ = timeline_.search();
  const bool is_done = input_line("##search", "Find a span by name", search_text_);
  if (search_text_ != timeline_.search() && ImGui::IsItemActive()) timeline_.look_for(search_text_);
  if (is_done) timeline_.show_found(0);
  ImGui::SameLine();
  if (timeline_.search().empty()) return;
  if (tool("<", "Shift+N: the one before")) timeline_.show_found(-1);
  if (tool(">", "N: the next one")) timeline_.show_found(1);
  const Findings* found = pieces_.found.get();
  if (found == nullptr || found->text != timeline_.search()) {
    draw_coloured(look().colours.dim, "looking\u2026", false);
  } else if (found->spans.empty()) {
    draw_coloured(look().colours.amber, "no span has that in its name", false);
  } else {
    draw_coloured(look().colours.dim,
                  fmt::format("{} of {}{}", timeline_.found_index() + 1, found->spans.size(),
                              found->is_cut ? " first" : ""),
                  false);
  }
  ImGui::SameLine();
}

// The whole run, with the view as a frame that can be dragged.
void TimelineView::draw_strip() {
  const float left = ImGui::GetCursorScreenPos().x + px(kLabelWidth);
  ImGui::SetCursorScreenPos({left, ImGui::GetCursorScreenPos().y});
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
  const float from = std::clamp(x_of(timeline_.view().begin), low.x, low.x + size.x);
  const float to = std::clamp(x_of(timeline_.view().end), from, low.x + size.x);
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
  timeline_.pan(at - timeline_.view().begin);
}

void TimelineView::draw_canvas() {
  const TimelineLayout layout = layout_of(*pieces_.run, closed_groups_);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const ImVec2 size = {std::max(px(220), room.x), std::max(px(80), room.y)};
  ImGui::InvisibleButton("##canvas", size, ImGuiButtonFlags_MouseButtonLeft);
  TimelinePlace place{.low = {at.x + px(kLabelWidth), at.y + px(kAxisHeight)},
                      .high = {at.x + size.x, at.y + size.y},
                      .label_width = px(kLabelWidth),
                      .axis_height = px(kAxisHeight),
                      .path_height = px(kPathHeight),
                      .view = timeline_.view()};
  const bool is_hovered = ImGui::IsItemHovered();
  if (is_hovered) {
    ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
    take_wheel(place, layout.height);
  }
  take_drag(place, layout.height);
  if (ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows)) take_keys();
  if (const auto track_id = timeline_.take_track_to_show())
    show_track(*track_id, place.high.y - place.low.y);
  scroll_y_ =
      std::clamp(scroll_y_, 0.0F, std::max(0.0F, layout.height - (place.high.y - place.low.y)));
  place.scroll_y = scroll_y_;
  place.view = timeline_.view();
  timeline_.ask_for_picture(place.high.x - place.low.x);

  TimelinePainter painter(pieces_, timeline_, layout, place);
  ImGui::PushClipRect(at, place.high, true);
  const PathTrack path(pieces_, timeline_, place);
  painter.draw_axis();
  path.draw();
  painter.draw_labels();
  painter.draw_rows();
  painter.draw_steps_and_changes();
  painter.draw_chosen();
  painter.draw_measured();
  if (pieces_.timeline == nullptr) {
    ImGui::GetWindowDrawList()->AddText({place.low.x + px(12), place.low.y + px(12)},
                                        look().colours.dim, "The operations are being read\u2026");
  }
  if (drag_ == Drag::zoom) {
    const float x = ImGui::GetIO().MousePos.x;
    ImGui::GetWindowDrawList()->AddRectFilled({place.x(drag_ts_), place.low.y}, {x, place.high.y},
                                              with_alpha(look().colours.amber, 0.15F));
  }
  ImGui::PopClipRect();
  if (is_hovered && drag_ == Drag::none) {
    const HoveredBox hovered = painter.box_at(ImGui::GetIO().MousePos);
    draw_box_tip(hovered);
    path.draw_tip(ImGui::GetIO().MousePos);
  }
  if (is_hovered) take_click(place, painter.box_at(ImGui::GetIO().MousePos));
  draw_sums(place);
}

// Its group is unfolded, and its row scrolled into view from the next frame on.
void TimelineView::show_track(std::int64_t track_id, float rows_height) {
  if (const TrackFacts* track = pieces_.facts().track(track_id)) closed_groups_.erase(track->group);
  const TimelineLayout layout = layout_of(*pieces_.run, closed_groups_);
  const TimelineRow* row = layout.row_of(track_id);
  if (row == nullptr) return;
  if (row->y >= scroll_y_ && row->y + row->height <= scroll_y_ + rows_height) return;
  scroll_y_ = std::max(0.0F, row->y + row->height / 2 - rows_height / 2);
}

void TimelineView::take_wheel(const TimelinePlace& place, float rows_height) {
  const ImGuiIO& io = ImGui::GetIO();
  const double width = static_cast<double>(timeline_.view().width());
  if (io.MouseWheelH != 0) timeline_.pan(static_cast<TimeNs>(-io.MouseWheelH * 0.1 * width));
  if (io.MouseWheel == 0) return;
  const bool is_over_labels = io.MousePos.x < place.low.x;
  if (io.KeyShift || io.KeyCtrl || is_over_labels) {
    scroll_y_ -= io.MouseWheel * px(48);
    scroll_y_ = std::clamp(scroll_y_, 0.0F, std::max(0.0F, rows_height));
    return;
  }
  // A live run that is followed is zoomed around its end, so that it is still followed.
  const TimeNs around = timeline_.follows() ? pieces_.run->end_ts : place.ts(io.MousePos.x);
  timeline_.zoom(std::pow(kWheelZoom, -static_cast<double>(io.MouseWheel)), around);
}

void TimelineView::take_drag(const TimelinePlace& place, float rows_height) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemActivated() && io.MousePos.x >= place.low.x) {
    drag_ = io.KeyCtrl                            ? Drag::zoom
            : io.KeyShift || timeline_.measures() ? Drag::measure
                                                  : Drag::pan;
    drag_ts_ = place.ts(io.MousePos.x);
    drag_view_ = timeline_.view();
    drag_scroll_ = scroll_y_;
  }
  if (drag_ == Drag::none) return;
  const ImVec2 moved = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, px(kClickSlack));
  const bool is_moved = moved.x != 0 || moved.y != 0;
  const TimeNs here = place.ts(std::clamp(io.MousePos.x, place.low.x, place.high.x));
  const TimeRange range{std::min(drag_ts_, here), std::max(drag_ts_, here)};
  if (drag_ == Drag::pan && is_moved) {
    const auto by = static_cast<TimeNs>(static_cast<double>(moved.x) / place.pixels_a_ns());
    timeline_.set_view({drag_view_.begin - by, drag_view_.end - by});
    scroll_y_ = std::clamp(drag_scroll_ - moved.y, 0.0F, std::max(0.0F, rows_height));
  }
  if (drag_ == Drag::measure && is_moved) timeline_.measure(range);
  if (ImGui::IsItemActive()) return;
  if (drag_ == Drag::zoom && range.width() > 0 && place.x(range.end) - place.x(range.begin) > 4)
    timeline_.set_view(range);
  drag_ = Drag::none;
}

void TimelineView::take_keys() {
  if (ImGui::GetIO().WantTextInput) return;
  const TimeNs width = timeline_.view().width();
  const TimeNs middle = timeline_.view().begin + width / 2;
  const auto pressed = [](ImGuiKey key) { return ImGui::IsKeyPressed(key); };
  if (ImGui::GetIO().KeyCtrl || ImGui::GetIO().KeyAlt) return;
  if (pressed(ImGuiKey_LeftArrow)) timeline_.pan(-width / 8);
  if (pressed(ImGuiKey_RightArrow)) timeline_.pan(width / 8);
  if (pressed(ImGuiKey_UpArrow) || pressed(ImGuiKey_Equal) || pressed(ImGuiKey_KeypadAdd))
    timeline_.zoom(1 / 1.5, middle);
  if (pressed(ImGuiKey_DownArrow) || pressed(ImGuiKey_Minus) || pressed(ImGuiKey_KeypadSubtract))
    timeline_.zoom(1.5, middle);
}

void TimelineView::take_click(const TimelinePlace& place, const HoveredBox& hovered) {
  const ImGuiIO& io = ImGui::GetIO();
  if (!ImGui::IsMouseReleased(ImGuiMouseButton_Left) ||
      io.MouseDragMaxDistanceSqr[0] > px(kClickSlack) * px(kClickSlack))
    return;
  if (io.MousePos.x < place.low.x) {
    const TimelineLayout layout = layout_of(*pieces_.run, closed_groups_);
    const TimelineRow* row = layout.row_at(io.MousePos.y - place.low.y + scroll_y_);
    if (row == nullptr || row->kind != TimelineRow::Kind::group) return;
    if (closed_groups_.erase(row->group) == 0) closed_groups_.insert(row->group);
    return;
  }
  const PathTrack path(pieces_, timeline_, place);
  if (const PathTrack::PieceAt at = path.piece_at(io.MousePos); at.piece != nullptr) {
    const std::int64_t span_id = std::max<std::int64_t>(0, at.piece->span_id);
    timeline_.choose(span_id);
    if (const auto track_id = track_of(pieces_.timeline.get(), span_id); track_id && span_id > 0)
      show_track(*track_id, place.high.y - place.low.y);
  } else if (hovered.box == nullptr) {
    timeline_.choose(0);
    timeline_.forget_measured();
  } else if (hovered.box->is_span()) {
    timeline_.choose(hovered.box->span_id);
  } else {
    timeline_.zoom(0.25, place.ts(io.MousePos.x));  // a bin opens when one comes nearer
  }
}

void TimelineView::draw_box_tip(const HoveredBox& hovered) const {
  if (hovered.box == nullptr || !ImGui::BeginTooltip()) return;
  const Box& box = *hovered.box;
  const std::string& name = pieces_.facts().string_of(box.name_id);
  if (!box.is_span()) {
    ImGui::Text("%s spans, the longest: %s", grouped_text(box.count).c_str(), name.c_str());
    if (ImGui::BeginTable("##tip", 2)) {
      draw_pair("in", time_text(box.end_ts - box.ts));
      draw_pair("busy, summed", time_text(box.busy_ns));
      ImGui::EndTable();
    }
    draw_note("click: nearer");
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
                                  ? fmt::format("{} of {}", rate_text(rate),
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

// Sums of the measured stretch, by name.
void TimelineView::draw_sums(const TimelinePlace& place) {
  if (!timeline_.measured().has_value() || pieces_.timeline == nullptr) return;
  const TimeRange range = *timeline_.measured();
  struct Sum {
    std::int64_t count = 0;
    double busy_ns = 0;
    double bytes = 0;
  };
  std::map<std::int32_t, Sum> sums;
  for (const TrackBoxes& track : pieces_.timeline->tracks) {
    for (const Box& box : track.boxes) {
      if (box.end_ts <= range.begin || box.ts >= range.end) continue;
      const auto length = static_cast<double>(std::max<TimeNs>(1, box.end_ts - box.ts));
      const TimeNs inside_ns = std::min(range.end, box.end_ts) - std::max(range.begin, box.ts);
      const double share = static_cast<double>(inside_ns) / length;
      Sum& sum = sums[box.name_id];
      sum.count += box.count;
      sum.busy_ns += static_cast<double>(box.busy_ns) * share;
      sum.bytes += static_cast<double>(box.bytes) * share;
    }
  }
  ImGui::SetNextWindowPos({place.high.x - px(12), place.high.y - px(12)}, ImGuiCond_Always, {1, 1});
  const ImGuiWindowFlags flags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_AlwaysAutoResize |
                                 ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking |
                                 ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoNav;
  ImGui::SetNextWindowBgAlpha(0.94F);
  if (!ImGui::Begin("Measured", nullptr, flags)) {
    ImGui::End();
    return;
  }
  {
    const FontScope title(look().bold, Look::kTextSize);
    ImGui::Text("%s measured", time_text(range.width()).c_str());
  }
  if (!pieces_.timeline->has_spans) draw_note("summed from bins: bytes show at a nearer zoom");
  if (!pieces_.timeline->covers(range.begin, range.end))
    draw_note("only of what lies near the view");
  if (ImGui::BeginTable("##sums", 4, ImGuiTableFlags_SizingFixedFit)) {
    for (const auto& [name_id, sum] : sums) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const std::string& name = pieces_.facts().string_of(name_id);
      draw_dot(stage_colour(pieces_.facts().stage_colour(name_id)));
      ImGui::SameLine();
      ImGui::TextUnformatted(name.c_str());
      ImGui::TableNextColumn();
      draw_figure(grouped_text(sum.count));
      ImGui::TableNextColumn();
      draw_figure(time_text(static_cast<TimeNs>(sum.busy_ns)));
      ImGui::TableNextColumn();
      draw_figure(sum.bytes > 0 ? bytes_text(sum.bytes) : "");
    }
    ImGui::EndTable();
  }
  draw_note("Esc ends measuring");
  ImGui::End();
}

}  // namespace sluice::gui
