#include "gui/views/timeline_painter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "gui/data/counter_store.h"
#include "gui/data/span_lookup.h"
#include "gui/data/step_paths.h"
#include "gui/views/run_pieces.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"

namespace sluice::gui {
namespace {

constexpr std::size_t kNamesMax = 1 << 16;  // whose colours are kept
constexpr float kTextRoom = 26;             // a narrower box has no text
constexpr float kSummaryColumn = 2;         // width, of the summary of a closed group

struct LanePlace {
  float y;
  float height;
};
LanePlace lane_place(const TimelineRow& row, const Box& box, int lane_count) {
  const float height = (row.height - px(4)) / static_cast<float>(std::max(1, lane_count));
  return {px(2) + height * static_cast<float>(box.lane), height};
}

}  // namespace

TimelinePainter::TimelinePainter(const RunPieces& pieces, const TimelineState& timeline,
                                 const TimelineLayout& layout, const TimelinePlace& place)
    : pieces_(pieces),
      timeline_(timeline),
      layout_(layout),
      place_(place),
      list_(ImGui::GetWindowDrawList()),
      paths_(pieces.paths.get()) {
  for (const auto& [id, text] : pieces_.facts().info.strings) {
    const auto index = static_cast<std::size_t>(id);
    if (id < 0 || index >= kNamesMax) continue;
    if (index >= colours_.size()) colours_.resize(index + 1, stage_colour({}));
    colours_[index] = stage_colour(pieces_.facts().stage_colour(id));
  }
  const Findings* found = pieces_.found.get();
  if (found == nullptr || timeline_.search.text().empty() || found->text != timeline_.search.text())
    return;
  dimmed_.assign(colours_.size(), true);
  for (const std::int32_t id : found->name_ids) {
    if (static_cast<std::size_t>(id) < dimmed_.size())
      dimmed_[static_cast<std::size_t>(id)] = false;
  }
}

ImU32 TimelinePainter::colour_of(std::int32_t name_id) const {
  const auto index = static_cast<std::size_t>(name_id);
  return index < colours_.size() ? colours_[index] : stage_colour({});
}

bool TimelinePainter::is_dimmed(const Box& box) const {
  const std::optional<analyze::Cause>& cause = timeline_.marked_cause();
  if (cause && (paths_ == nullptr || !paths_->is_on_path(box.span_id, *cause))) return true;
  return is_dimmed(box.name_id);
}

bool TimelinePainter::is_dimmed(std::int32_t name_id) const {
  const auto index = static_cast<std::size_t>(name_id);
  return index < dimmed_.size() && dimmed_[index];
}

void TimelinePainter::draw_rows() {
  list_->PushClipRect(place_.low, place_.high, true);
  for (const TimelineRow& row : layout_.rows) {
    const float y = place_.row_y(row);
    if (y + row.height < place_.low.y || y > place_.high.y) continue;
    if (row.kind == TimelineRow::Kind::counter) {
      draw_counter(row);
    } else if (pieces_.timeline != nullptr && row.is_summary()) {
      draw_summary(row);
    } else if (pieces_.timeline != nullptr && row.track_id >= 0) {
      const TrackBoxes* track = pieces_.timeline->of_track(row.track_id);
      if (track != nullptr) draw_boxes(row, *track);
    }
  }
  list_->PopClipRect();
}

void TimelinePainter::draw_boxes(const TimelineRow& row, const TrackBoxes& track) {
  const double pixels_a_ns = place_.pixels_a_ns();  // a division: once, not for each end
  const TimeNs view_begin = place_.view.begin;
  const auto x_of = [pixels_a_ns, view_begin, low_x = place_.low.x](TimeNs ts) {
    return low_x + static_cast<float>(static_cast<double>(ts - view_begin) * pixels_a_ns);
  };
  RectBatch rects(list_);
  float last_x[kLanesMax] = {-1, -1, -1, -1};
  for (const Box& box : track.near(view_begin, place_.view.end)) {
    if (box.end_ts < view_begin) continue;
    // A box within the column that was just filled would change nothing that can be seen.
    const float right = x_of(box.end_ts);
    if (right < last_x[box.lane]) continue;
    const float left = x_of(box.ts);
    last_x[box.lane] = std::floor(right) <= left ? std::floor(right) + 1 : -1;
    draw_box(row, box, track.lane_count, std::max(left, place_.low.x - 1),
             std::min(right, place_.high.x + 1), rects);
  }
}

void TimelinePainter::draw_box(const TimelineRow& row, const Box& box, int lane_count, float left,
                               float end, RectBatch& rects) {
  const LanePlace lane = lane_place(row, box, lane_count);
  const float width = end - left;
  // A gap of half a pixel tells neighbours apart.
  const float right = left + std::max(1.0F, width > 3 && box.is_span() ? width - 0.7F : width);
  float top = place_.row_y(row) + lane.y;
  const float bottom = top + lane.height - (lane.height > 6 ? 1 : 0);
  if (box.is_span() || box.count == 1) {
    // whole height
  } else {
    // A bin is as high as it is full, and never too low to be seen.
    const auto full = static_cast<float>(
        static_cast<double>(box.busy_ns) /
        static_cast<double>(std::max<TimeNs>(1, (box.end_ts - box.ts) * lane_count)));
    top = bottom - (bottom - top) * std::clamp(full, 0.18F, 1.0F);
  }
  ImU32 colour = colour_of(box.name_id);
  const bool is_dim = is_dimmed(box);
  if (is_dim) colour = with_alpha(colour, 0.16F);
  rects.add(box.lane, {left, top}, {right, bottom}, colour);
  const bool has_text = width > px(kTextRoom) && lane.height > px(11) && box.is_span();
  const bool is_on_path =
      width > 2 && !is_dim && box.is_span() && paths_ != nullptr && paths_->is_on_path(box.span_id);
  if (!box.is_failed && !has_text && !is_on_path) return;
  rects.flush();
  if (is_on_path)
    list_->AddRect({left, top}, {right, bottom}, with_alpha(look().colours.text, 0.55F));
  if (box.is_failed) list_->AddRect({left, top}, {right, bottom}, look().colours.red);
  if (has_text) draw_box_text(box, {left, top}, {right, bottom}, colour);
}

void TimelinePainter::draw_box_text(const Box& box, ImVec2 low, ImVec2 high, ImU32 colour) {
  std::string text = pieces_.facts().string_of(box.name_id);
  if (box.layer >= 0)
    text += fmt::format(" {}", box.layer);
  else if (box.subgroup >= 0)
    text += fmt::format(" {}", box.subgroup);
  const FontScope font(look().text, 10.5F);
  const float begin = std::max(low.x, place_.low.x) + px(3);
  if (ImGui::CalcTextSize(text.c_str()).x > high.x - begin - px(2)) return;
  const float y = (low.y + high.y - ImGui::GetFontSize()) / 2;
  list_->AddText({begin, y}, text_on(colour), text.c_str());
}

// A step line; each column shows its lowest and its highest value.
void TimelinePainter::draw_counter(const TimelineRow& row) {
  const auto found = pieces_.run->counters->by_track.find(row.track_id);
  if (found == pieces_.run->counters->by_track.end()) return;
  const CounterSamples& samples = *found->second;
  if (samples.is_empty()) return;
  const double high = samples.high() > 0 ? samples.high() : 1;
  const double low = std::min(0.0, samples.low());
  const float top = place_.row_y(row) + px(4);
  const float height = row.height - px(8);
  const auto y_of = [&](double value) {
    return top + height * (1 - static_cast<float>((value - low) / (high - low)));
  };
  const ImU32 colour = look().colours.accent;
  float x_before = place_.low.x;
  std::optional<float> y_before;
  for (const CounterColumn& column :
       samples.columns(place_.view.begin, place_.view.end, place_.column_ns())) {
    const float x = std::max(place_.low.x, place_.x(column.ts));
    const float y_from = y_before.value_or(y_of(column.low));
    const float y_low = std::max(y_from, y_of(column.low));
    const float y_high = std::min(y_from, y_of(column.high));
    if (y_before) list_->AddLine({x_before, *y_before}, {x, *y_before}, colour, px(1));
    list_->AddLine({x, y_high}, {x, y_low}, colour, px(1));
    x_before = x;
    y_before = y_of(column.last);
  }
  if (!y_before) return;
  const float x_end = std::min(place_.high.x, place_.x(pieces_.run->end_ts));
  if (x_end > x_before) list_->AddLine({x_before, *y_before}, {x_end, *y_before}, colour, px(1));
}

// As high as its tracks are busy, in the colour of what takes most of their time.
void TimelinePainter::draw_summary(const TimelineRow& row) {
  const float y = place_.row_y(row);
  const float bottom = y + row.height - px(2);
  const float height = row.height - px(4);
  list_->AddRectFilled({place_.low.x, y + px(2)}, {place_.high.x, bottom},
                       with_alpha(look().colours.inset, 0.5F));
  const float step = px(kSummaryColumn);
  const auto count = static_cast<std::size_t>((place_.high.x - place_.low.x) / step);
  const std::vector<BusyColumn> columns =
      busy_columns(*pieces_.timeline, row.members, place_.view.begin, place_.view.end, count);
  const float width =
      (place_.high.x - place_.low.x) / static_cast<float>(std::max<std::size_t>(1, count));
  RectBatch rects(list_);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].busy_tracks <= 0) continue;
    const float left = place_.low.x + width * static_cast<float>(c);
    const float full = columns[c].busy_tracks / static_cast<float>(row.members.size());
    ImU32 colour = colour_of(columns[c].name_id);
    if (is_dimmed(columns[c].name_id)) colour = with_alpha(colour, 0.16F);
    rects.add(0, {left, bottom - std::max(1.0F, height * full)}, {left + width, bottom}, colour);
  }
}

ImVec2 TimelinePainter::middle_of(const rundb::SpanRow& span, bool at_end) const {
  const TimelineRow* row = layout_.row_of(span.track_id);
  const float x = place_.x(at_end ? span.ts + span.dur : span.ts);
  return {x, row == nullptr ? place_.high.y : place_.row_y(*row) + row->height / 2};
}

void TimelinePainter::draw_chosen() {
  const ChosenSpan* chosen = pieces_.chosen.get();
  if (chosen == nullptr || chosen->row.id != timeline_.chosen_span()) return;
  const TimelineRow* row = layout_.row_of(chosen->row.track_id);
  list_->PushClipRect(place_.low, place_.high, true);
  if (row != nullptr) {
    const float left = place_.x(chosen->row.ts);
    const float right = std::max(left + px(2), place_.x(chosen->row.ts + chosen->row.dur));
    const float y = place_.row_y(*row);
    list_->AddRect({left - 1, y + 1}, {right + 1, y + row->height - 1}, look().colours.text, px(2),
                   px(1.5F));
  }
  for (const FlowEnd& flow : chosen->flows) {
    const rundb::SpanRow& from = flow.is_cause ? flow.row : chosen->row;
    const rundb::SpanRow& to = flow.is_cause ? chosen->row : flow.row;
    const ImVec2 begin = middle_of(from, true);
    const ImVec2 end = middle_of(to, false);
    const float bend = std::max(px(16), std::abs(end.x - begin.x) / 2);
    list_->AddBezierCubic(begin, {begin.x + bend, begin.y}, {end.x - bend, end.y}, end,
                          with_alpha(look().colours.text, 0.75F), px(1.2F));
    list_->AddCircleFilled(end, px(2.5F), look().colours.text);
  }
  list_->PopClipRect();
}

void TimelinePainter::draw_measured() {
  if (!timeline_.measure.range().has_value()) return;
  const TimeRange& range = *timeline_.measure.range();
  const float left = std::clamp(place_.x(range.begin), place_.low.x, place_.high.x);
  const float right = std::clamp(place_.x(range.end), place_.low.x, place_.high.x);
  const ImU32 accent = look().colours.accent;
  list_->AddRectFilled({left, place_.low.y}, {right, place_.high.y}, with_alpha(accent, 0.12F));
  list_->AddLine({left, place_.low.y}, {left, place_.high.y}, accent, px(1));
  list_->AddLine({right, place_.low.y}, {right, place_.high.y}, accent, px(1));
  const std::string name = "measured range " + time_text(range.width());
  draw_tag(list_, place_, {(left + right - tag_width(name)) / 2, place_.low.y + px(2)}, name,
           accent);
}

void TimelinePainter::draw_labels() {
  list_->PushClipRect({place_.low.x - place_.label_width, place_.low.y}, place_.high, true);
  for (const TimelineRow& row : layout_.rows) {
    const float y = place_.row_y(row);
    if (y + row.height >= place_.low.y && y <= place_.high.y) draw_label(row);
  }
  list_->PopClipRect();
}

void TimelinePainter::draw_label(const TimelineRow& row) {
  const Colours& colours = look().colours;
  const float left = place_.low.x - place_.label_width;
  const float right = place_.low.x - px(6);
  const float y = place_.row_y(row);
  const float middle = y + row.height / 2;
  const bool is_group = row.kind == TimelineRow::Kind::group;
  if (is_group && row.y > 0)
    list_->AddLine({left, y}, {place_.high.x, y}, with_alpha(colours.line, 0.8F));
  if (row.has_rows) {
    const float x = left + px(5);
    const float r = px(3.5F);
    if (row.is_closed) {
      list_->AddTriangleFilled({x - r * 0.7F, middle - r}, {x + r, middle},
                               {x - r * 0.7F, middle + r}, colours.dim);
    } else {
      list_->AddTriangleFilled({x - r, middle - r * 0.7F}, {x + r, middle - r * 0.7F},
                               {x, middle + r}, colours.dim);
    }
  }
  list_->PushClipRect({left, y}, {right, y + row.height}, true);
  float end = right;
  if (!row.away.empty()) {
    const FontScope font(look().text, Look::kSmallSize);
    const std::string word = fmt::format("+{} idle", row.away.size());
    end -= ImGui::CalcTextSize(word.c_str()).x;
    list_->AddText({end, middle - ImGui::GetFontSize() / 2}, colours.dim, word.c_str());
  }
  const FontScope font(is_group ? look().bold : look().text, Look::kTextSize - 1);
  const float x = left + px(is_group || row.has_rows ? 13 : 22);
  list_->PushClipRect({x, y}, {end - px(2), y + row.height}, true);
  list_->AddText({x, middle - ImGui::GetFontSize() / 2}, is_group ? colours.text : colours.dim,
                 row.label.c_str());
  list_->PopClipRect();
  list_->PopClipRect();
}

HoveredBox TimelinePainter::box_at(ImVec2 mouse) const {
  if (pieces_.timeline == nullptr || mouse.x < place_.low.x || mouse.x > place_.high.x ||
      mouse.y < place_.low.y || mouse.y > place_.high.y)
    return {};
  const TimelineRow* row = layout_.row_at(mouse.y - place_.low.y + place_.scroll_y);
  if (row == nullptr || row->track_id < 0 || row->is_summary()) return {};
  const TrackBoxes* track = pieces_.timeline->of_track(row->track_id);
  if (track == nullptr) return {};
  const float slack = px(2);  // a box of one pixel can be hit, too
  const TimeRange around{place_.ts(mouse.x - slack), place_.ts(mouse.x + slack)};
  const Box* best = nullptr;
  for (const Box& box : track->near(around.begin, around.end)) {
    if (box.end_ts < around.begin) continue;
    const LanePlace lane = lane_place(*row, box, track->lane_count);
    const float top = place_.row_y(*row) + lane.y;
    if (mouse.y < top - 1 || mouse.y > top + lane.height + 1) continue;
    if (best == nullptr || box.end_ts - box.ts < best->end_ts - best->ts) best = &box;
  }
  return {best, best == nullptr ? nullptr : row};
}

TimelinePainter::HoveredSummary TimelinePainter::summary_at(ImVec2 mouse) const {
  if (pieces_.timeline == nullptr || mouse.x < place_.low.x || mouse.x > place_.high.x ||
      mouse.y < place_.low.y || mouse.y > place_.high.y)
    return {};
  const TimelineRow* row = layout_.row_at(mouse.y - place_.low.y + place_.scroll_y);
  if (row == nullptr || !row->is_summary()) return {};
  const float half = px(kSummaryColumn) / 2;
  const std::vector<BusyColumn> under =
      busy_columns(*pieces_.timeline, row->members, place_.ts(mouse.x - half),
                   std::max(place_.ts(mouse.x + half), place_.ts(mouse.x - half) + 1), 1);
  return {row, under.front()};
}

}  // namespace sluice::gui
