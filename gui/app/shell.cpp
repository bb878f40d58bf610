#include "gui/app/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gui/app/awaited_pieces.h"
#include "gui/app/opening_notice.h"
#include "gui/app/run_door.h"
#include "gui/app/shell_parts.h"
#include "gui/data/child_process.h"
#include "gui/data/like_run.h"
#include "gui/data/opening.h"
#include "gui/data/run_path.h"
#include "gui/views/session.h"

namespace sluice::gui {

Shell::Shell(Settings& settings, std::string program, Answers answers, bool gives_way)
    : settings_(&settings),
      program_(std::move(program)),
      gives_way_(gives_way),
      session_(std::make_unique<Session>()),
      door_(std::make_unique<RunDoor>(*session_, settings, std::move(answers))),
      parts_(std::make_unique<ShellParts>(settings, program_)),
      views_(all_views(*session_)) {
  for (const std::unique_ptr<View>& view : views_)
    view->is_open = std::ranges::find(settings.closed, view->title()) == settings.closed.end();
  make_commands();
}

Shell::~Shell() = default;

void Shell::choose_far(FarChoice far) { door_->choose_far(std::move(far)); }

void Shell::open_runs(std::vector<std::string> paths) {
  close_run();
  parts_->start_page.open_nothing();
  parts_->new_run.forget();
  door_->open(std::move(paths));
}

void Shell::close_run() {
  door_->close();
  parts_->problem_notice.follow_log({});
}

Theme Shell::wanted_theme() const { return settings_->theme; }
void Shell::set_theme(Theme theme) { settings_->theme = theme; }

std::string Shell::window_title() const {
  if (session_->pieces.feed == nullptr) return "Sluice";
  const std::string file = file_name(session_->pieces.place());
  if (!session_->pieces.has_facts()) return file + " - Sluice";
  const RunFacts& facts = session_->pieces.facts();
  return fmt::format("{}{} - {}{} - Sluice", facts.name(),
                     session_->pieces.run->is_live ? " (live)" : "", file,
                     facts.stand_ins.empty() ? "" : " - " + facts.stand_ins);
}

std::vector<std::string> Shell::awaited() const {
  if (const Opening* opening = door_->opening(); opening != nullptr) {
    const bool is_refused = opening->result() != nullptr && !opening->result()->problem.empty();
    return is_refused ? std::vector<std::string>() : std::vector<std::string>{"the run"};
  }
  if (session_->pieces.feed == nullptr) {
    return parts_->start_page.is_settled() ? std::vector<std::string>()
                                           : std::vector<std::string>{"the list of runs"};
  }
  return awaited_pieces(*session_, door_->spans_at_opening());
}

void Shell::draw(const FrameCost& cost) {
  door_->take_opened();
  session_->pick_up();
  door_->note_spans();
  // The run whose copy is here has its processors elsewhere.
  const bool is_near = session_->pieces.far == nullptr;
  if (gives_way_ && is_near && session_->pieces.was_live()) parts_->spare_time.give_way();
  if (session_->pieces.verdict != nullptr)
    session_->control.consultation.ask_for_suggestions(*session_->pieces.verdict, ImGui::GetTime());
  run_pressed(commands_);
  if (parts_->top_bar.draw(session_->pieces, door_->opening(), commands_, cost))
    door_->read_ranks_again();
  parts_->export_panel.draw();
  draw_opening();
  if (session_->pieces.feed != nullptr) {
    draw_run();
  } else if (door_->opening() == nullptr) {
    draw_start_page();
  }
  begin_new_run();
  if (const std::string path = parts_->open_box.draw(); !path.empty()) open_run(path);
  if (!session_->wanted_run.empty()) open_run(std::exchange(session_->wanted_run, {}));
  parts_->palette.draw(commands_);
  draw_shortcut_sheet(commands_, &parts_->shows_shortcuts);
  had_popup_ = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
}

void Shell::begin_new_run() {
  RunControl& control = session_->control;
  if (session_->pieces.has_facts() && control.take_new_run()) {
    control.note_new_run({});
    const LikeRun like = session_->pieces.like_run(control.choice.pending().settings());
    parts_->new_run.begin([program = program_, like] {
      return start_like(program.empty() ? find_sluice() : program, like);
    });
  }
  const std::optional<Result<StartedRun>> started = parts_->new_run.take();
  if (!started) return;
  if (!started->ok()) {
    control.note_new_run(started->error().message());
    return;
  }
  const StartedRun run = **started;
  open_run(run.database);
  parts_->problem_notice.follow_log(run.log);
}

void Shell::draw_start_page() {
  const StartChoice choice = parts_->start_page.draw();
  if (choice.opens_box) parts_->open_box.open();
  if (choice.database.empty()) return;
  open_run(choice.database);
  parts_->problem_notice.follow_log(choice.log);
}

// Ranks that are read again leave the picture before as it is, and the top bar says how far it is.
void Shell::draw_opening() {
  if (door_->opening() == nullptr) return;
  const bool has_picture = session_->pieces.feed != nullptr;
  const std::shared_ptr<const Opened> opened = door_->opening()->result();
  if (has_picture && (opened == nullptr || opened->problem.empty())) return;
  const OpeningChoice choice = draw_opening_notice(*door_->opening(), has_picture);
  if (choice == OpeningChoice::none) return;
  door_->end_opening();
  if (choice == OpeningChoice::open_another) parts_->open_box.open();
}

void Shell::draw_run() {
  const NoticeChoice choice = parts_->problem_notice.draw(session_->pieces);
  if (choice == NoticeChoice::open_another) parts_->open_box.open();
  if (choice == NoticeChoice::close_run) close_run();
  if (session_->pieces.has_facts()) parts_->docks.draw(views_, session_->foreground, *settings_);
}

}  // namespace sluice::gui
