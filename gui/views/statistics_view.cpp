#include "gui/views/statistics_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/words.h"
#include "gui/data/span_lookup.h"
#include "gui/data/span_scan.h"
#include "gui/views/doubt_line.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr std::array<const char*, kGroupings> kGroupingWords = {"by name", "by device", "by layer",
                                                                "by subgroup", "by rank"};

constexpr std::array<const char*, static_cast<std::size_t>(StatisticsOf::count_)> kPartWords = {
    "whole run", "since the last change", "visible range", "measured range"};
const char* words_of(StatisticsOf part) { return kPartWords[static_cast<std::size_t>(part)]; }

// A view that pans or follows asks anew at most this often.
constexpr double kAskSeconds = 0.5;

// The mean of one operation while it was under way.
double bandwidth(const StatisticRow& row) {
  return row.bytes > 0 && row.sum_ns > 0
             ? static_cast<double>(row.bytes) * 1e9 / static_cast<double>(row.sum_ns)
             : 0;
}

double key_of(const StatisticRow& row, int column) {
  switch (column) {
    case 1:
      return row.of;
    case 2:
      return static_cast<double>(row.count);
    case 4:
      return static_cast<double>(row.median_ns);
    case 5:
      return static_cast<double>(row.p99_ns);
    case 6:
      return static_cast<double>(row.max_ns);
    case 7:
      return bandwidth(row);
    case 8:
      return row.share_of_limit().value_or(0);
    default:
      return static_cast<double>(row.sum_ns);
  }
}

}  // namespace

StatisticsView::StatisticsView(const RunPieces& pieces, TimelineState& timeline)
    : View(words::kStatistics), pieces_(pieces), timeline_(timeline) {}
const char* StatisticsView::help() const {
  return "Counts, sums, quantiles and bandwidths of spans";
}

std::string StatisticsView::of_text(const StatisticRow& row) const {
  const bool has_ranks = pieces_.facts().info.has_all_ranks();
  if (by_ == GroupBy::name) return "";
  if (row.of == -1) return by_ == GroupBy::device && has_ranks ? "none, or other ranks'" : "none";
  if (row.of == kFurtherOnes) return "further ones";
  if (by_ == GroupBy::device) return pieces_.facts().device_name(row.of);
  const char* word = by_ == GroupBy::layer  ? "layer "
                     : by_ == GroupBy::rank ? "rank "
                                            : "subgroup ";
  return word + std::to_string(row.of);
}

void StatisticsView::sort_rows() {
  rows_ = shown_->rows[static_cast<std::size_t>(by_)];
  rows_of_ = shown_.get();
  std::ranges::stable_sort(rows_, [&](const StatisticRow& a, const StatisticRow& b) {
    const StatisticRow& first = ascending_ ? a : b;
    const StatisticRow& second = ascending_ ? b : a;
    if (sorted_column_ != 0) return key_of(first, sorted_column_) < key_of(second, sorted_column_);
    return pieces_.facts().string_of(first.name_id) < pieces_.facts().string_of(second.name_id);
  });
}

StatisticsOf StatisticsView::part() const {
  if (chosen_part_) return *chosen_part_;
  return range_of(StatisticsOf::since_change) ? StatisticsOf::since_change
                                              : StatisticsOf::whole_run;
}

std::optional<ScanRange> StatisticsView::range_of(StatisticsOf part) const {
  if (part == StatisticsOf::whole_run) return ScanRange();
  if (part == StatisticsOf::visible)
    return ScanRange{timeline_.view.range().begin, timeline_.view.range().end};
  if (part == StatisticsOf::measured) {
    if (!timeline_.measure.range()) return std::nullopt;
    return ScanRange{timeline_.measure.range()->begin, timeline_.measure.range()->end};
  }
  const std::vector<rundb::KnobChangeRow>& changes = pieces_.facts().info.knob_changes;
  // Values that were planned for the first step changed nothing.
  if (changes.empty() || changes.back().step_id <= 0) return std::nullopt;
  const auto step =
      std::ranges::lower_bound(pieces_.steps(), changes.back().step_id, {}, &rundb::StepRow::id);
  if (step == pieces_.steps().end()) return std::nullopt;
  return ScanRange{.begin = step->ts};
}

void StatisticsView::choose_statistics() {
  if (chosen_of_ != pieces_.feed.get()) {
    chosen_of_ = pieces_.feed.get();
    chosen_part_.reset();
    by_ = GroupBy::name;
    asked_ = {};
  }
  const std::optional<ScanRange> range = range_of(part());
  const bool is_whole = range == ScanRange();
  const double now = ImGui::GetTime();
  const bool may_ask = now - asked_at_ >= kAskSeconds && !ImGui::IsMouseDown(ImGuiMouseButton_Left);
  if (range && !(*range == asked_) && (is_whole || may_ask)) {
    asked_ = *range;
    asked_at_ = now;
    pieces_.feed->want_statistics(*range);
  }
  // The part before stays until the next one has been read, so that nothing blinks.
  if (!range) {
    shown_ = nullptr;
  } else if (is_whole) {
    shown_ = pieces_.statistics;
  } else if (pieces_.range_statistics != nullptr && pieces_.range_statistics->range == asked_) {
    shown_ = pieces_.range_statistics;
  } else if (shown_ == pieces_.statistics) {
    shown_ = nullptr;
  }
}

// How many spans, of which part of the run, by which clock.
std::string StatisticsView::note() const {
  const std::string clock = pieces_.facts().info.clock_note();
  std::string text = pieces_.facts().info.has_all_ranks() ? "all ranks, " : "";
  text += words_of(part());
  if (shown_ != nullptr) {
    const bool is_reading = shown_->seen_count < shown_->span_count;
    if (shown_->range.end != ScanRange().end)
      text += ", " + time_text(shown_->range.end - shown_->range.begin);
    text += ": " + grouped_text(shown_->seen_count);
    if (is_reading) text += " of " + grouped_text(shown_->span_count);
    text += is_reading ? " spans read" : " spans";
  }
  return clock.empty() ? text : text + "; " + clock;
}

void StatisticsView::draw_content() {
  choose_statistics();
  draw_title("Statistics", note());
  draw_doubt_line(pieces_);
  if (pieces_.statistics == nullptr) {
    draw_empty("The operations are being read\u2026");
    return;
  }
  if (pieces_.statistics->span_count == 0) {
    draw_empty("The run recorded no operations; record=transfers or record=all records them.");
    return;
  }
  draw_tools();
  if (shown_ == nullptr) {
    draw_empty(part() == StatisticsOf::measured && !timeline_.measure.range()
                   ? "Nothing is measured: Shift+drag on the timeline measures a range."
                   : "The operations of this part are being read\u2026");
    return;
  }
  if (shown_->seen_count == 0) {
    draw_empty("No operation begins in this part of the run.");
    return;
  }
  draw_table();
  draw_histogram();
}

void StatisticsView::draw_tools() {
  for (std::size_t by = 0; by < kGroupings; ++by) {
    if (static_cast<GroupBy>(by) == GroupBy::rank && !pieces_.facts().info.has_all_ranks())
      continue;
    if (by > 0) ImGui::SameLine();
    const bool is_on = by_ == static_cast<GroupBy>(by);
    if (is_on) ImGui::PushStyleColor(ImGuiCol_Text, look().colours.accent);
    if (ImGui::Button(kGroupingWords[by])) {
      by_ = static_cast<GroupBy>(by);
      rows_of_ = nullptr;
    }
    if (is_on) ImGui::PopStyleColor();
  }
  ImGui::SameLine();
  // On a line of its own where its words would be cut.
  if (ImGui::GetContentRegionAvail().x < px(150)) ImGui::NewLine();
  draw_parts();
}

void StatisticsView::draw_parts() {
  ImGui::SetNextItemWidth(-1);
  if (!ImGui::BeginCombo("##part", words_of(part()))) return;
  for (std::size_t p = 0; p < kPartWords.size(); ++p) {
    const auto one = static_cast<StatisticsOf>(p);
    const bool is_there = one == StatisticsOf::measured || range_of(one);
    ImGui::BeginDisabled(!is_there);
    if (ImGui::Selectable(kPartWords[p], one == part())) chosen_part_ = one;
    ImGui::EndDisabled();
    if (!is_there) ImGui::SetItemTooltip("no knob was changed");
  }
  ImGui::EndCombo();
}

void StatisticsView::draw_table() {
  const ImGuiTableFlags flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollX |
                                ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit |
                                ImGuiTableFlags_Sortable | ImGuiTableFlags_Resizable;
  const bool has_histogram = shown_name_ >= 0;
  const float height = has_histogram ? -px(92) : 0;
  // Narrower than this it scrolls sideways, so that no name is cut.
  const float room = ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize;
  const float width = std::max(room, px(by_ == GroupBy::name ? 690 : 780));
  if (!ImGui::BeginTable("##statistics", 9, flags, {0, height}, width)) return;
  ImGui::TableSetupScrollFreeze(1, 1);
  const ImGuiTableColumnFlags down = ImGuiTableColumnFlags_PreferSortDescending;
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthStretch, 2);
  ImGui::TableSetupColumn("of", by_ == GroupBy::name ? ImGuiTableColumnFlags_Disabled : 0);
  ImGui::TableSetupColumn("count", down, px(66));
  ImGui::TableSetupColumn("sum", down | ImGuiTableColumnFlags_DefaultSort, px(66));
  ImGui::TableSetupColumn("median", down, px(66));
  ImGui::TableSetupColumn("p99", down, px(66));
  ImGui::TableSetupColumn("longest", down, px(66));
  ImGui::TableSetupColumn("bandwidth", down, px(86));
  ImGui::TableSetupColumn(words::kOfLimit, down | ImGuiTableColumnFlags_WidthStretch, 1.4F);
  ImGui::TableHeadersRow();
  ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  if (specs != nullptr && specs->SpecsDirty && specs->SpecsCount > 0) {
    sorted_column_ = specs->Specs[0].ColumnIndex;
    ascending_ = specs->Specs[0].SortDirection == ImGuiSortDirection_Ascending;
    specs->SpecsDirty = false;
    rows_of_ = nullptr;
  }
  if (rows_of_ != shown_.get()) sort_rows();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows_.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_row(rows_[static_cast<std::size_t>(i)], i);
  }
  ImGui::EndTable();
}

// The chosen span is one of those that the row sums.
bool StatisticsView::is_of_chosen(const StatisticRow& row) const {
  if (pieces_.chosen == nullptr || pieces_.chosen->row.name_id != row.name_id) return false;
  const rundb::SpanRow& chosen = pieces_.chosen->row;
  switch (by_) {
    case GroupBy::device:
      return row.of == chosen.device_id;
    case GroupBy::layer:
      return row.of == chosen.layer_id;
    case GroupBy::subgroup:
      return row.of == chosen.subgroup_id;
    case GroupBy::rank: {
      const auto track = pieces_.facts().info.tracks.find(chosen.track_id);
      return track != pieces_.facts().info.tracks.end() && row.of == track->second.rank;
    }
    default:
      return true;
  }
}

void StatisticsView::draw_row(const StatisticRow& row, int index) {
  const std::string& name = pieces_.facts().string_of(row.name_id);
  ImGui::TableNextRow();
  if (is_of_chosen(row)) mark_table_row();
  ImGui::TableNextColumn();
  ImGui::PushID(index);
  const ImU32 colour = stage_colour(pieces_.facts().stage_colour(row.name_id));
  draw_dot(colour);
  ImGui::SameLine(0, px(6));
  const bool is_shown = row.name_id == shown_name_ && row.of == shown_of_;
  if (ImGui::Selectable(name.c_str(), is_shown, ImGuiSelectableFlags_SpanAllColumns)) {
    shown_name_ = is_shown ? -1 : row.name_id;
    shown_of_ = row.of;
    timeline_.search.look_for(is_shown ? "" : name);
  }
  ImGui::SetItemTooltip("click: mark these on the timeline, show how long they take");
  ImGui::PopID();
  if (ImGui::TableNextColumn()) ImGui::TextUnformatted(of_text(row).c_str());
  const auto figure = [](const std::string& text) {
    ImGui::TableNextColumn();
    draw_figure(text);
  };
  figure(grouped_text(row.count));
  figure(time_text(row.sum_ns));
  figure(time_text(row.median_ns));
  figure(time_text(row.p99_ns));
  figure(time_text(row.max_ns));
  figure(row.bytes > 0 ? rate_text(bandwidth(row)) : "");
  ImGui::TableNextColumn();
  if (row.limit_bytes_per_s <= 0) return;
  const std::optional<double> known = row.share_of_limit();
  if (!known) {
    draw_figure("shared", look().colours.dim);
    ImGui::SetItemTooltip(
        "several were under way at once: what of the limit each had is not known");
    return;
  }
  const double share = *known;
  const float room = ImGui::GetContentRegionAvail().x - px(48);
  if (room > px(20)) {
    draw_meter(share, colour, {room, px(9)});
    ImGui::SameLine();
  }
  draw_figure(percent_text(share));
  ImGui::SetItemTooltip(
      "while any of them was under way, however many at once; others may have "
      "shared the link");
}

void StatisticsView::draw_histogram() const {
  const auto row = std::ranges::find_if(rows_, [this](const StatisticRow& r) {
    return r.name_id == shown_name_ && r.of == shown_of_;
  });
  if (row == rows_.end()) return;
  const DurationHistogram& durations = *row->durations;
  std::size_t first = DurationHistogram::kClasses;
  std::size_t last = 0;
  std::uint32_t most = 1;
  for (std::size_t c = 0; c < DurationHistogram::kClasses; ++c) {
    if (durations.count_in(c) == 0) continue;
    first = std::min(first, c);
    last = c;
    most = std::max(most, durations.count_in(c));
  }
  const std::string& name = pieces_.facts().string_of(row->name_id);
  const ImU32 colour = stage_colour(pieces_.facts().stage_colour(row->name_id));
  draw_note(fmt::format("How long {} takes: {} to {}, each bar an eighth of an octave", name,
                        time_text(DurationHistogram::lower(first)),
                        time_text(DurationHistogram::lower(last + 1))));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = ImGui::GetContentRegionAvail();
  const float width = std::min(px(18), size.x / static_cast<float>(last - first + 1));
  for (std::size_t c = first; c <= last; ++c) {
    const float share = static_cast<float>(durations.count_in(c)) / static_cast<float>(most);
    const float x = at.x + width * static_cast<float>(c - first);
    const ImVec2 low = {x, at.y + size.y * (1 - share)};
    const ImVec2 high = {x + width - 1, at.y + size.y};
    ImGui::GetWindowDrawList()->AddRectFilled(low, high, colour);
    if (ImGui::IsMouseHoveringRect({x, at.y}, high)) {
      ImGui::SetTooltip("%s to %s: %s spans", time_text(DurationHistogram::lower(c)).c_str(),
                        time_text(DurationHistogram::lower(c + 1)).c_str(),
                        grouped_text(durations.count_in(c)).c_str());
    }
  }
}

}  // namespace sluice::gui
