#include "gui/views/links_view.h"

#include <algorithm>

#include "base/words.h"
#include "gui/data/span_lookup.h"
#include "gui/data/verdict.h"
#include "gui/views/doubt_line.h"
#include "gui/views/run_colours.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr double kFull = 0.95;

ImU32 load_colour(const analyze::LinkLoad& load) {
  using analyze::Cause;
  if (load.is_shared) return colour_of(Cause::host_link);
  return colour_of(load.direction == rundb::Direction::read ? Cause::read : Cause::write);
}

// On the way of the chosen span, in its direction.
bool is_chosen(const RunPieces& pieces, const analyze::LinkLoad& load) {
  if (pieces.chosen == nullptr) return false;
  const auto track = pieces.facts().info.tracks.find(pieces.chosen->row.track_id);
  return track != pieces.facts().info.tracks.end() && track->second.direction == load.direction &&
         std::ranges::find(track->second.links, load.link_id) != track->second.links.end();
}

void draw_row(const analyze::LinkLoad& load, bool is_marked) {
  ImGui::TableNextRow();
  if (is_marked) mark_table_row();
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(load.name.c_str());
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(analyze::direction_text(load).c_str());
  ImGui::TableNextColumn();
  draw_figure(bytes_text(static_cast<double>(load.bytes)));
  ImGui::TableNextColumn();
  draw_figure(rate_text(load.bytes_per_s));
  ImGui::TableNextColumn();
  draw_figure(load.bytes_per_s_max > 0 ? rate_text(load.bytes_per_s_max) : "not stated",
              look().colours.dim);
  ImGui::TableNextColumn();
  draw_figure(time_text(load.busy_ns));
  ImGui::TableNextColumn();
  draw_meter(load.share, load_colour(load), {ImGui::GetContentRegionAvail().x, px(10)});
  ImGui::TableNextColumn();
  draw_figure(percent_text(load.share), load.share >= kFull ? look().colours.red : 0);
}

}  // namespace

LinksView::LinksView(const RunPieces& pieces) : View(words::kLinks), pieces_(pieces) {}
const char* LinksView::help() const { return "Bytes and bandwidth of each link, and its limit"; }

void LinksView::draw_content() {
  const std::string clock = pieces_.has_facts() ? pieces_.facts().info.clock_note() : "";
  const bool has_ranks = pieces_.has_facts() && pieces_.facts().info.has_all_ranks();
  draw_title("Links", (has_ranks ? "rank 0's, means of the steps looked at"
                                 : "means of the steps looked at") +
                          (clock.empty() ? "" : "; " + clock));
  draw_doubt_line(pieces_);
  if (pieces_.verdict == nullptr) {
    draw_empty("The steps are being looked at\u2026");
    return;
  }
  if (!pieces_.verdict->why_empty.empty()) {
    draw_empty(pieces_.verdict->why_empty);
    return;
  }
  const auto& links = pieces_.verdict->analysis.links;
  if (links.empty()) {
    draw_empty("Nothing moved over a link.");
    return;
  }
  // A narrower pane scrolls, and keeps the names.
  const float room = px(640);
  const bool is_narrow = ImGui::GetContentRegionAvail().x < room;
  const ImGuiTableFlags flags =
      ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit;
  if (!ImGui::BeginTable("##links", 8, flags | (is_narrow ? ImGuiTableFlags_ScrollX : 0), {0, 0},
                         is_narrow ? room : 0))
    return;
  ImGui::TableSetupScrollFreeze(is_narrow ? 1 : 0, 1);
  ImGui::TableSetupColumn("link", ImGuiTableColumnFlags_WidthStretch, 2);
  ImGui::TableSetupColumn("direction", ImGuiTableColumnFlags_WidthStretch, 1.6F);
  ImGui::TableSetupColumn("bytes a step");
  ImGui::TableSetupColumn(words::kWhenActive);
  ImGui::TableSetupColumn("limit");
  ImGui::TableSetupColumn("busy");
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 2);
  ImGui::TableSetupColumn(words::kOfLimit);
  ImGui::TableHeadersRow();
  for (const analyze::LinkLoad& load : links) draw_row(load, is_chosen(pieces_, load));
  ImGui::EndTable();
}

}  // namespace sluice::gui
