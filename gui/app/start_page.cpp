#include "gui/app/start_page.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/app/notice.h"
#include "gui/app/window.h"
#include "gui/data/child_process.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr double kStartLookSeconds = 2;  // at most, until a run that begins appears

}  // namespace

StartPage::StartPage(const Settings& settings, SpareTime& spare_time, std::string program)
    : settings_(&settings), program_(std::move(program)), beginning_(spare_time) {
  samples_.begin(sample_runs, Window::wake);
}

StartChoice StartPage::draw() {
  look_for_runs_again();
  look_at_recent_runs();
  StartChoice choice;
  take_begun_run(choice);
  if (begin_panel("Start", px(760), px(80))) {
    {
      const FontScope font(look().bold, 22);
      ImGui::TextUnformatted("Sluice");
    }
    draw_empty("Drop a run database or a run's folder here, choose one below, or press Ctrl+O.");
    if (ImGui::Button("Open a run\u2026")) choice.opens_box = true;
    ImGui::Dummy({0, px(8)});
    draw_title("Live on this machine");
    const std::shared_ptr<const KnownRuns> known = runs_.result();
    if (known == nullptr) {
      draw_empty("Looking for runs\u2026");
    } else if (known->live.empty()) {
      draw_empty("No run is being recorded. `./run` begins one.");
    } else {
      draw_path_list("live", known->live, choice);
    }
    ImGui::Dummy({0, px(8)});
    draw_title("Opened before");
    if (settings_->recent.empty()) draw_empty("None yet.");
    draw_path_list("recent", settings_->recent, choice);
    ImGui::Dummy({0, px(8)});
    draw_new_runs();
    ImGui::Dummy({0, px(8)});
    draw_note("? shows all shortcuts, Ctrl+P all commands.");
  }
  ImGui::End();
  return choice;
}

void StartPage::look_for_runs_again() {
  const double now = ImGui::GetTime();
  if (now - looked_at_ < kStartLookSeconds || runs_.is_working()) return;
  looked_at_ = now;
  runs_.begin([recent = settings_->recent] { return look_for_runs(recent); }, Window::wake);
}

// Each time that the page comes up.
void StartPage::look_at_recent_runs() {
  constexpr double kAwaySeconds = 2;
  const double now = ImGui::GetTime();
  if (now - std::exchange(drawn_at_, now) < kAwaySeconds) return;
  recent_.begin(
      [paths = settings_->recent] {
        std::vector<RunSummary> runs;
        for (const std::string& path : paths) runs.push_back(summary_of(path));
        return runs;
      },
      Window::wake);
}

// "tiny · 2026-11-25 12:39 · 60 steps · loss 2.29"; empty: nothing is known of it.
std::string StartPage::summary_words(const std::string& path) const {
  const std::shared_ptr<const std::vector<RunSummary>> runs = recent_.result();
  if (runs == nullptr) return {};
  const auto run = std::ranges::find(*runs, path, &RunSummary::path);
  if (run == runs->end() || run->name.empty()) return {};
  if (run->is_far) return run->name;
  std::string text = run->name;
  if (run->rank_count > 0) text += fmt::format(" \u00b7 {} ranks", run->rank_count);
  if (!run->started.empty()) text += " \u00b7 " + run->started;
  text += fmt::format(" \u00b7 {} step{}", grouped_text(run->step_count),
                      run->step_count == 1 ? "" : "s");
  if (run->is_simulated) return text + " \u00b7 simulated";
  return std::isfinite(run->loss) ? text + " \u00b7 loss " + figure_text(run->loss, 3) : text;
}

void StartPage::draw_path_list(const char* id, const std::vector<std::string>& paths,
                               StartChoice& choice) {
  const std::shared_ptr<const KnownRuns> known = runs_.result();
  ImGui::PushID(id);
  for (const std::string& path : paths) {
    const bool is_gone = known != nullptr && known->gone.contains(path);
    ImGui::BeginDisabled(is_gone);
    if (ImGui::Selectable(path.c_str())) choice.database = path;
    ImGui::EndDisabled();
    const std::string words = is_gone ? "gone" : summary_words(path);
    if (words.empty()) continue;
    const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(path.c_str()).x;
    if (figure_size(words).x < room - px(12)) {
      ImGui::SameLine();
      draw_figure(words, look().colours.dim);
    } else {
      ImGui::Indent(px(12));
      draw_note(words);
      ImGui::Unindent(px(12));
    }
  }
  ImGui::PopID();
}

// A run outlives the window, which watches runs and owns none.
void StartPage::draw_new_runs() {
  draw_title("New run", "into out/; it keeps running without this window");
  const std::shared_ptr<const std::vector<SampleRun>> samples = samples_.result();
  if (samples == nullptr || samples->empty()) {
    draw_empty(samples == nullptr ? "Looking for sample_models/runs\u2026"
                                  : "There is no folder sample_models/runs here: start sluice-gui "
                                    "in a checkout.");
    return;
  }
  for (const SampleRun& run : *samples) {
    ImGui::PushID(run.name.c_str());
    if (ImGui::Button("Begin")) begin_run(run);
    ImGui::PopID();
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(run.name.c_str());
    if (!run.comment.empty()) draw_note(run.comment);
  }
  if (!problem_.empty()) draw_coloured(look().colours.red, problem_);
}

void StartPage::begin_run(const SampleRun& run) {
  problem_.clear();
  beginning_.begin([program = program_, run] {
    return start_run(program.empty() ? find_sluice() : program, run, "out");
  });
}

void StartPage::take_begun_run(StartChoice& choice) {
  const std::optional<Result<StartedRun>> started = beginning_.take();
  if (!started) return;
  if (started->ok()) {
    choice.database = (*started)->database;
    choice.log = (*started)->log;
  } else {
    problem_ = started->error().message();
  }
}

}  // namespace sluice::gui
