#include "gui/views/runs_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/text_input.h"
#include "profiler/runs/run_colours.h"

namespace sluice::gui {
namespace {

// Table and curves lie side by side in a view that is wider or lower.
constexpr float kWide = 900;
constexpr float kLow = 340;
constexpr int kTickColumn = 0;

float width_of(const runs::Column& column) {
  if (column.key == "path" && !column.is_setting) return px(170);
  if (column.key == "mode" || column.key == "marks" || column.key == "left_out") return px(200);
  if (column.key == "when") return px(118);
  return column.unit == runs::Unit::text ? px(90) : px(76);
}

// The first place that no other run has.
std::size_t free_place(const std::vector<ChosenRun>& chosen) {
  std::size_t place = 0;
  while (std::ranges::find(chosen, place, &ChosenRun::place) != chosen.end()) ++place;
  return place;
}

}  // namespace

RunsView::RunsView(const std::vector<std::string>& recent, std::string& wanted_run,
                   const std::function<void()>& wake)
    : View(words::kRuns), recent_(recent), wanted_run_(wanted_run), wake_(wake), curves_(wake) {}
const char* RunsView::help() const {
  return "All runs of a folder as a table, and their curves over each other";
}

void RunsView::read() {
  was_asked_ = true;
  table_.begin([folder = folder_, recent = recent_] { return read_run_table(folder, recent); },
               wake_);
}

void RunsView::draw_content() {
  if (!was_asked_) read();
  const std::shared_ptr<const RunTable> table = table_.result();
  draw_title(words::kRuns, "a double click opens a run");
  draw_tools(table.get());
  if (table == nullptr) {
    draw_empty("Runs are being read\u2026");
    return;
  }
  if (!table->problem.empty()) {
    draw_coloured(look().colours.amber, table->problem);
    return;
  }
  update_shown(table);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool is_wide = room.x > px(kWide) || room.y < px(kLow);
  const ImVec2 size = is_wide ? ImVec2(room.x * 0.52F, room.y) : ImVec2(room.x, room.y * 0.5F);
  if (ImGui::BeginChild("##runs", size)) draw_table(*table);
  ImGui::EndChild();
  if (is_wide) ImGui::SameLine();
  if (ImGui::BeginChild("##curves")) curves_.draw(chosen_);
  ImGui::EndChild();
}

void RunsView::draw_tools(const RunTable* table) {
  ImGui::SetNextItemWidth(px(160));
  const bool is_entered = input_line("##folder", "folder of runs", folder_);
  ImGui::SetItemTooltip("Runs below this folder, and those opened before");
  ImGui::SameLine();
  if (ImGui::Button(table_.is_working() ? "reading\u2026###read" : "Read again###read") ||
      is_entered) {
    read();
  }
  ImGui::SameLine();
  ImGui::SetNextItemWidth(px(180));
  input_line("##filter", "filter: all of these words", order_.filter);
  if (table == nullptr || !table->problem.empty()) return;
  ImGui::SameLine();
  draw_note(fmt::format("{} of {} runs{}; {} of {} ticked", shown_.size(), table->rows.size(),
                        table->is_whole ? "" : ", and more", chosen_.size(), runs::kOverlaidMax));
}

void RunsView::update_shown(const std::shared_ptr<const RunTable>& table) {
  if (table == shown_of_ && order_ == shown_for_) return;
  if (table != shown_of_) {
    std::erase_if(chosen_, [&table](const ChosenRun& run) {
      return std::ranges::find(table->rows, run.path, &RunRow::path) == table->rows.end();
    });
  }
  shown_of_ = table;
  shown_for_ = order_;
  shown_ = shown_rows(*table, order_);
}

void RunsView::draw_table(const RunTable& table) {
  const ImGuiTableFlags flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollX |
                                ImGuiTableFlags_ScrollY | ImGuiTableFlags_Sortable |
                                ImGuiTableFlags_SortTristate | ImGuiTableFlags_Resizable;
  const int columns = static_cast<int>(table.columns.size()) + 1;
  // Columns of another reading are others.
  const std::string id = fmt::format("##table {}", columns);
  if (!ImGui::BeginTable(id.c_str(), columns, flags)) return;
  ImGui::TableSetupScrollFreeze(2, 1);
  ImGui::TableSetupColumn("##tick", ImGuiTableColumnFlags_NoSort | ImGuiTableColumnFlags_WidthFixed,
                          px(42));
  for (const runs::Column& column : table.columns) {
    ImGui::TableSetupColumn(column.title.c_str(), ImGuiTableColumnFlags_WidthFixed,
                            width_of(column));
  }
  sort_as_asked();
  ImGui::TableHeadersRow();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(shown_.size()));
  while (clipper.Step()) {
    for (int at = clipper.DisplayStart; at < clipper.DisplayEnd; ++at)
      draw_row(table, shown_[static_cast<std::size_t>(at)]);
  }
  ImGui::EndTable();
}

void RunsView::sort_as_asked() {
  ImGuiTableSortSpecs* const specs = ImGui::TableGetSortSpecs();
  if (specs == nullptr || !specs->SpecsDirty) return;
  specs->SpecsDirty = false;
  const bool is_sorted = specs->SpecsCount > 0;
  order_.column = is_sorted ? specs->Specs->ColumnIndex - 1 : -1;
  order_.is_descending = is_sorted && specs->Specs->SortDirection == ImGuiSortDirection_Descending;
}

void RunsView::draw_row(const RunTable& table, std::size_t index) {
  const RunRow& row = table.rows[index];
  ImGui::TableNextRow();
  ImGui::TableSetColumnIndex(kTickColumn);
  ImGui::PushID(static_cast<int>(index));
  draw_tick(row);
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    if (!ImGui::TableSetColumnIndex(static_cast<int>(column) + 1)) continue;
    const std::string& text = row.texts[column];
    const ImU32 colour = row.is_amiss ? look().colours.amber : look().colours.text;
    if (column == 0) {
      ImGui::PushStyleColor(ImGuiCol_Text, colour);
      ImGui::Selectable(text.c_str(), false, ImGuiSelectableFlags_AllowDoubleClick);
      ImGui::PopStyleColor();
      const bool is_opened =
          ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
      if (is_opened) wanted_run_ = row.path;
      ImGui::SetItemTooltip("%s%s%s", row.path.c_str(), row.remarks.empty() ? "" : "\n",
                            row.remarks.c_str());
    } else if (table.columns[column].unit == runs::Unit::text) {
      draw_coloured(colour, text, false);
      if (text.size() > 12) ImGui::SetItemTooltip("%s", text.c_str());
    } else {
      draw_figure(text, colour);
    }
  }
  ImGui::PopID();
}

void RunsView::draw_tick(const RunRow& row) {
  const auto chosen = std::ranges::find(chosen_, row.path, &ChosenRun::path);
  const bool was_chosen = chosen != chosen_.end();
  bool is_chosen = was_chosen;
  const bool is_full = chosen_.size() >= runs::kOverlaidMax;
  ImGui::BeginDisabled(!was_chosen && (is_full || !row.has_steps));
  const bool is_turned = ImGui::Checkbox("##chosen", &is_chosen);
  ImGui::EndDisabled();
  if (was_chosen) {
    ImGui::SameLine(0, px(4));
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ImGui::GetStyle().FramePadding.y);
    draw_dot(themed(runs::kRunColours[chosen->place]));
  }
  if (!is_turned) return;
  if (was_chosen) {
    chosen_.erase(chosen);
  } else {
    chosen_.push_back({row.path, row.name, free_place(chosen_)});
  }
}

}  // namespace sluice::gui
