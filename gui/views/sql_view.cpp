#include "gui/views/sql_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/data/sql_console.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/text_input.h"

namespace sluice::gui {
namespace {

constexpr std::size_t kColumnsMax =
    64;  // ImGui's tables have at most 512; nobody reads more than this

bool is_figure(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.-+e") == std::string::npos;
}

void draw_cell(const std::string& text) {
  if (is_figure(text)) {
    draw_figure(text);
  } else {
    ImGui::TextUnformatted(text.c_str(), text.c_str() + std::min<std::size_t>(text.size(), 400));
  }
}

}  // namespace

SqlView::SqlView(const RunPieces& pieces, TimelineState& timeline, SqlRequest& request,
                 Foreground& foreground)
    : View("SQL"),
      pieces_(pieces),
      timeline_(timeline),
      request_(request),
      foreground_(foreground) {}
const char* SqlView::help() const { return "Ask the run database; nothing can be written"; }

// Choosing one asks for its first rows, as a question to go on from.
void SqlView::draw_tables() {
  ImGui::SetNextItemWidth(px(150));
  if (!ImGui::BeginCombo("##tables", "tables", ImGuiComboFlags_HeightLarge)) return;
  const auto tables = pieces_.feed->console().tables();
  if (tables == nullptr) draw_empty("The tables are being read\u2026");
  for (const SqlTable& table : tables == nullptr ? std::vector<SqlTable>() : *tables) {
    const std::string label = table.name + (table.is_view ? "  (view)" : "");
    if (ImGui::Selectable(label.c_str())) {
      question_ = fmt::format("SELECT * FROM {} LIMIT 100", table.name);
      pieces_.feed->console().ask(question_);
    }
    ImGui::SetItemTooltip("%s", table.columns.c_str());
  }
  ImGui::EndCombo();
}

void SqlView::draw_content() {
  draw_title("SQL", "read-only; tables: docs/rundb_schema.md; step ids count from 0");
  std::string requested = request_.take();
  const bool is_requested = !requested.empty();
  if (is_requested) question_ = std::move(requested);
  {
    const FontScope font(look().mono, Look::kTextSize);
    if (ImGui::IsWindowAppearing() && ImGui::IsWindowFocused()) ImGui::SetKeyboardFocusHere();
    input_lines("##question", question_, {-1, ImGui::GetTextLineHeight() * 4 + px(8)});
  }
  const bool is_typing = ImGui::IsItemFocused() || ImGui::IsItemActive();
  SqlConsole& console = pieces_.feed->console();
  const bool asks = is_typing && ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_Enter);
  if (ImGui::Button("Run") || asks || is_requested) console.ask(question_);
  ImGui::SetItemTooltip("Ctrl+Enter");
  ImGui::SameLine();
  draw_tables();
  ImGui::SameLine();
  const std::shared_ptr<const SqlAnswer> answer = console.answer();
  if (console.is_working()) {
    if (ImGui::Button("Stop")) console.stop();
    ImGui::SameLine();
    draw_empty("SQLite is working on it\u2026");
    return;
  }
  if (answer == nullptr) {
    draw_empty("Ctrl+Enter runs the question.");
    return;
  }
  if (!answer->problem.empty()) {
    ImGui::NewLine();
    draw_coloured(look().colours.red, answer->problem);
    return;
  }
  draw_empty(fmt::format("{}{} rows in {}", answer->is_cut ? "the first " : "",
                         grouped_text(static_cast<std::int64_t>(answer->rows.size())),
                         time_text(static_cast<TimeNs>(answer->seconds * 1e9))));
  draw_track_button(answer);
  draw_rows(*answer);
}

// Rows that are spans, or have a time of their own, stand on the timeline if somebody wants.
void SqlView::draw_track_button(const std::shared_ptr<const SqlAnswer>& answer) {
  if (answer->pieces.empty()) return;
  ImGui::SameLine();
  const bool is_track = timeline_.answer_track == answer;
  if (ImGui::SmallButton(is_track ? "Put the track away###track" : "As a track###track")) {
    timeline_.answer_track = is_track ? nullptr : answer;
    if (!is_track) foreground_.bring("Timeline");
  }
  ImGui::SetItemTooltip("Rows on the timeline, by their columns ts and dur, or their span's times");
}

void SqlView::draw_rows(const SqlAnswer& answer) {
  const std::size_t columns = std::min(answer.columns.size(), kColumnsMax);
  const ImGuiTableFlags flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollX |
                                ImGuiTableFlags_ScrollY | ImGuiTableFlags_Resizable |
                                ImGuiTableFlags_SizingFixedFit;
  // A table of its own for each answer: widths are those of what it shows.
  const std::string id = fmt::format("##rows{}", answer.number);
  if (columns == 0 || !ImGui::BeginTable(id.c_str(), static_cast<int>(columns), flags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (std::size_t c = 0; c < columns; ++c) ImGui::TableSetupColumn(answer.columns[c].c_str());
  ImGui::TableHeadersRow();
  ImGui::PushFont(look().mono, Look::kTextSize);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(answer.rows.size()));
  while (clipper.Step()) {
    for (int r = clipper.DisplayStart; r < clipper.DisplayEnd; ++r) {
      ImGui::TableNextRow();
      for (std::size_t c = 0; c < columns; ++c) {
        ImGui::TableNextColumn();
        const std::string& text = answer.rows[static_cast<std::size_t>(r)][c];
        if (answer.span_column == c) {
          draw_span_link(r, text, answer.span_id_of(static_cast<std::size_t>(r)));
        } else {
          draw_cell(text);
        }
      }
    }
  }
  ImGui::PopFont();
  ImGui::EndTable();
}

// Leads to the span on the timeline; NULL leads nowhere.
void SqlView::draw_span_link(int row, const std::string& text,
                             std::optional<std::int64_t> span_id) {
  if (!span_id) {
    draw_cell(text);
    return;
  }
  ImGui::PushID(row);
  ImGui::PushStyleColor(ImGuiCol_Text, look().colours.accent);
  const std::string label = text + "###span";
  if (ImGui::Selectable(label.c_str(), timeline_.chosen_span() == *span_id)) {
    timeline_.go_to(*span_id);
    foreground_.bring("Timeline");
  }
  ImGui::PopStyleColor();
  ImGui::PopID();
}

}  // namespace sluice::gui
