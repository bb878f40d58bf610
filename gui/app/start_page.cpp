#include "gui/app/start_page.h"

#include <imgui.h>

#include "gui/app/notice.h"
#include "gui/app/window.h"
#include "gui/data/child_process.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr double kLookSeconds = 2;  // at most, until a run that begins appears

}  // namespace

StartPage::StartPage(const Settings& settings, SpareTime& spare_time, std::string program)
    : settings_(&settings), spare_time_(&spare_time), program_(std::move(program)) {
  samples_.begin(sample_runs, Window::wake);
}

StartChoice StartPage::draw() {
  look_for_runs_again();
  StartChoice choice;
  take_begun_run(choice);
  if (begin_panel("Start", px(760), px(80))) {
    {
      const FontScope font(look().bold, 22);
      ImGui::TextUnformatted("Sluice");
    }
    draw_empty("Drop a run database here, choose one below, or press Ctrl+O.");
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
  if (now - looked_at_ < kLookSeconds || runs_.is_working()) return;
  looked_at_ = now;
  runs_.begin([recent = settings_->recent] { return look_for_runs(recent); }, Window::wake);
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
    if (!is_gone) continue;
    ImGui::SameLine();
    draw_figure("gone", look().colours.dim);
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
    if (ImGui::Button("Begin") && beginning_ == nullptr) begin_run(run);
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
  beginning_ = std::make_shared<Published<Result<StartedRun>>>();
  spare_time_->do_ordinarily([into = beginning_, program = program_, run] {
    into->publish(std::make_shared<const Result<StartedRun>>(
        start_run(program.empty() ? find_sluice() : program, run, "out")));
    Window::wake();
  });
}

void StartPage::take_begun_run(StartChoice& choice) {
  if (beginning_ == nullptr) return;
  const std::shared_ptr<const Result<StartedRun>> started = beginning_->latest();
  if (started == nullptr) return;
  beginning_.reset();
  if (started->ok()) {
    choice.database = (*started)->database;
    choice.log = (*started)->log;
  } else {
    problem_ = started->error().message();
  }
}

}  // namespace sluice::gui
