#include "gui/views/details_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/data/span_lookup.h"
#include "gui/data/span_scan.h"
#include "gui/views/explained_steps.h"
#include "gui/widgets/duration_plot.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr float kLabelWidth = 92;
constexpr std::size_t kBarsMax = 48;  // more would be too thin to be told apart

// The classes from the shortest to the longest, as many to a bar as makes at most kBarsMax.
std::vector<DurationBar> bars_of(const DurationHistogram& durations) {
  std::size_t first = DurationHistogram::kClasses;
  std::size_t last = 0;
  for (std::size_t c = 0; c < DurationHistogram::kClasses; ++c) {
    if (durations.count_in(c) == 0) continue;
    first = std::min(first, c);
    last = c;
  }
  std::vector<DurationBar> bars;
  if (first > last) return bars;
  const std::size_t classes = (last - first) / kBarsMax + 1;
  for (std::size_t c = first; c <= last; c += classes) {
    DurationBar& bar = bars.emplace_back(DurationBar{DurationHistogram::lower(c), 0});
    for (std::size_t in = c; in < c + classes && in <= last; ++in)
      bar.count += durations.count_in(in);
  }
  return bars;
}

void draw_lines(const std::vector<DetailLine>& lines) {
  if (!ImGui::BeginTable("##lines", 2)) return;
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthFixed, px(kLabelWidth));
  ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
  for (const DetailLine& line : lines) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw_coloured(look().colours.dim, line.label, false);
    ImGui::TableNextColumn();
    draw_coloured(look().colours.text, line.text);
  }
  ImGui::EndTable();
}

}  // namespace

DetailsView::DetailsView(const RunPieces& pieces, TimelineState& timeline, SqlRequest& sql,
                         Foreground& foreground)
    : View("Details"), pieces_(pieces), timeline_(timeline), sql_(sql), foreground_(foreground) {}
const char* DetailsView::help() const {
  return "The chosen span: its figures, its rank, what set it off and what it set off";
}

void DetailsView::draw_content() {
  const std::int64_t span_id = timeline_.chosen_span();
  const ChosenSpan* chosen = pieces_.chosen.get();
  if (span_id == 0 && timeline_.explained()) {
    draw_explained_steps(pieces_, timeline_, foreground_);
    return;
  }
  if (span_id == 0) {
    draw_title("Details");
    draw_empty(
        "Click a span on the timeline: what it took and what set it off stands here. A double "
        "click on a step, a click on its time in Steps, or a measured range: why it took as long.");
    return;
  }
  if (chosen == nullptr || chosen->row.id != span_id) {
    draw_title("Details");
    draw_empty(fmt::format("Span {} is being read\u2026", span_id));
    return;
  }
  const SpanDetails details = details_of(pieces_, *chosen);
  draw_dot(stage_colour(details.colour));
  ImGui::SameLine();
  draw_title(details.name);
  if (details.is_failed) draw_coloured(look().colours.red, "failed", false);
  draw_buttons(details);
  draw_lines(details.lines);
  draw_durations(*chosen);
  draw_links("Set off by", "nothing that was recorded", details.causes);
  draw_links("Set off", "nothing that was recorded", details.effects);
}

// All spans of its name, by the statistics of the whole run.
void DetailsView::draw_durations(const ChosenSpan& chosen) {
  if (pieces_.statistics == nullptr) return;
  const auto& rows = pieces_.statistics->rows[static_cast<std::size_t>(GroupBy::name)];
  const auto row = std::ranges::find(rows, chosen.row.name_id, &StatisticRow::name_id);
  if (row == rows.end() || row->durations == nullptr || row->count < 2) return;
  draw_note(fmt::format("all {} of its name, by duration; this one in amber; bars are logarithmic",
                        grouped_text(row->count)));
  draw_duration_bars("##durations", bars_of(*row->durations), chosen.row.dur);
}

void DetailsView::draw_buttons(const SpanDetails& details) {
  // No tips: they would cover the lines beneath.
  if (ImGui::SmallButton("Copy (Ctrl+C)")) ImGui::SetClipboardText(details_text(details).c_str());
  ImGui::SameLine();
  if (ImGui::SmallButton("Zoom to it")) timeline_.fit_selection();
  ImGui::SameLine();
  if (ImGui::SmallButton("Ask in SQL")) {
    sql_.put(details_question(details.span_id));
    foreground_.bring("SQL");
  }
}

void DetailsView::draw_links(const char* title, const char* none,
                             const std::vector<DetailLink>& links) {
  ImGui::Dummy({0, px(2)});
  {
    const FontScope font(look().bold, Look::kTextSize);
    ImGui::TextUnformatted(title);
  }
  if (links.empty()) draw_empty(none);
  ImGui::PushID(title);
  for (const DetailLink& link : links) {
    const std::string id = fmt::format("span {}", link.row.id);
    if (draw_link(id.c_str(), link.text, look().colours.accent)) timeline_.go_to(link.row);
  }
  ImGui::PopID();
}

}  // namespace sluice::gui
