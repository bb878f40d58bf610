#include "gui/app/open_box.h"

#include <fmt/format.h>
#include <imgui.h>

#include <cmath>

#include "gui/app/window.h"
#include "gui/data/run_path.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/text_input.h"

namespace sluice::gui {
namespace {

constexpr const char* kName = "Open a run";
constexpr const char* kFolder = "out";        // where runs write
constexpr double kLookSeconds = 0.5;          // until a file that appears is seen
constexpr std::size_t kCompletionsShown = 6;  // more are counted

// Without what all of them have in front.
std::string end_of(const std::string& path) {
  const std::size_t slash = path.rfind('/', path.size() - 2);
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::string OpenBox::draw() {
  if (is_opening_) begin();
  const ImVec2 screen = ImGui::GetMainViewport()->WorkSize;
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5F, 0.5F});
  // A popup is as small as what it holds, and the list is as large as the popup.
  const ImVec2 size = {std::min(px(860), screen.x * 0.95F), std::min(px(460), screen.y * 0.9F)};
  ImGui::SetNextWindowSizeConstraints(size, size);
  if (!ImGui::BeginPopup(kName)) return {};
  draw_title(kName, "a row opens it; Tab completes a path");
  bool opens = false;
  draw_path(opens);
  std::string chosen = draw_runs();
  if (opens) chosen = path_;
  if (!chosen.empty()) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
  return chosen;
}

void OpenBox::begin() {
  ImGui::OpenPopup(kName);
  if (path_.empty()) path_ = std::string(kFolder) + "/";
  runs_.begin([recent = *recent_] { return list_runs(kFolder, recent); }, Window::wake);
}

void OpenBox::draw_path(bool& opens) {
  if (is_opening_) ImGui::SetKeyboardFocusHere();
  is_opening_ = false;
  ImGui::SetNextItemWidth(-px(80));
  const bool is_entered = completing_line("##path", "out/tiny/run.db", path_, [this] {
    const std::shared_ptr<const TypedPath> seen = look_.result();
    return seen != nullptr && seen->path == path_ ? completed(path_, seen->completions) : path_;
  });
  look_at_typed_path();
  ImGui::SameLine();
  opens = (ImGui::Button("Open", {-1, 0}) || is_entered) && !path_.empty();
  draw_completions();
}

void OpenBox::draw_completions() {
  const std::shared_ptr<const TypedPath> seen = look_.result();
  if (seen == nullptr || seen->path != path_ || seen->is_file) {
    draw_note(" ");
    return;
  }
  if (seen->is_far) {
    draw_note("Open follows this run by ssh: ssh://[user@]host[:port]/path/run.db");
    return;
  }
  std::string text;
  for (std::size_t c = 0; c < std::min(seen->completions.size(), kCompletionsShown); ++c)
    text += (c == 0 ? "" : "   ") + end_of(seen->completions[c]);
  if (seen->completions.size() > kCompletionsShown)
    text += fmt::format("   and {} more", seen->completions.size() - kCompletionsShown);
  if (seen->rank_count > 0)
    text = fmt::format("Open shows {} ranks as one.   ", seen->rank_count) + text;
  draw_note(text.empty() ? "There is no such file yet." : text);
}

std::string OpenBox::draw_runs() {
  const std::shared_ptr<const std::vector<RunSummary>> runs = runs_.result();
  if (runs == nullptr || runs_.is_working()) {
    draw_empty("Looking for runs\u2026");
    return {};
  }
  if (runs->empty()) {
    draw_empty("No run was found in out/, and none was opened before.");
    return {};
  }
  std::string chosen;
  const ImGuiTableFlags flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##runs", 5, flags, ImGui::GetContentRegionAvail())) return {};
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("run", ImGuiTableColumnFlags_WidthFixed, px(150));
  ImGui::TableSetupColumn("started (UTC)", ImGuiTableColumnFlags_WidthFixed, px(130));
  ImGui::TableSetupColumn("steps", ImGuiTableColumnFlags_WidthFixed, px(70));
  ImGui::TableSetupColumn("last loss", ImGuiTableColumnFlags_WidthFixed, px(80));
  ImGui::TableSetupColumn("database", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableHeadersRow();
  for (std::size_t r = 0; r < runs->size(); ++r) {
    const RunSummary& run = (*runs)[r];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string ranks = run.rank_count > 0 ? fmt::format(", {} ranks", run.rank_count) : "";
    const std::string label = fmt::format("{}{}###run {}", run.name, ranks, r);
    if (ImGui::Selectable(label.c_str(), false, ImGuiSelectableFlags_SpanAllColumns))
      chosen = run.path;
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(run.started.c_str());
    ImGui::TableNextColumn();
    draw_figure(run.is_far ? "-" : grouped_text(run.step_count), look().colours.text);
    ImGui::TableNextColumn();
    draw_figure(std::isfinite(run.loss) && !run.is_simulated ? figure_text(run.loss, 3) : "-",
                look().colours.dim);
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(run.path.c_str());
  }
  ImGui::EndTable();
  return chosen;
}

void OpenBox::look_at_typed_path() {
  const std::shared_ptr<const TypedPath> seen = look_.result();
  const bool is_new = seen == nullptr || seen->path != path_;
  const double now = ImGui::GetTime();
  if (look_.is_working() || (!is_new && now - looked_at_ < kLookSeconds)) return;
  looked_at_ = now;
  look_.begin([path = path_] { return look_at_path(path); }, Window::wake);
}

}  // namespace sluice::gui
