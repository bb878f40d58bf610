#include "gui/app/problem_notice.h"

#include "gui/app/notice.h"
#include "gui/app/window.h"
#include "gui/data/new_run.h"
#include "gui/data/opening.h"
#include "gui/views/run_pieces.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {

void ProblemNotice::follow_log(const std::string& log) {
  log_ = log;
  log_line_.forget();
}

NoticeChoice ProblemNotice::draw(const RunPieces& pieces) {
  const bool is_waiting = pieces.run == nullptr;
  if (!is_waiting && pieces.run->problem.empty()) return NoticeChoice::none;
  const bool has_rest = pieces.has_facts();
  NoticeChoice choice = NoticeChoice::none;
  const Notice notice("Problem", px(760), px(has_rest ? 40 : 120),
                      is_waiting ? look().colours.line : look().colours.red);
  if (!notice.is_shown()) return choice;
  if (is_waiting) {
    draw_title("Opening");
    draw_empty(pieces.place());
  } else if (!has_rest && !log_.empty()) {
    draw_starting();
    if (ImGui::Button("Close the run")) choice = NoticeChoice::close_run;
  } else {
    draw_title(has_rest ? "The run can no longer be read" : "This run cannot be shown");
    draw_coloured(look().colours.text, pieces.run->problem);
    draw_note("It is tried again twice a second.");
    if (ImGui::Button("Close the run")) choice = NoticeChoice::close_run;
    ImGui::SameLine();
    if (ImGui::Button("Open another\u2026")) choice = NoticeChoice::open_another;
  }
  return choice;
}

// The run has no database yet; what it prints meanwhile is all there is to see.
void ProblemNotice::draw_starting() {
  const double now = ImGui::GetTime();
  if (now - log_seen_at_ > 0.5 && !log_line_.is_working()) {
    log_seen_at_ = now;
    log_line_.begin([log = log_] { return last_log_line(log); }, Window::wake);
  }
  draw_title("The run is starting");
  const std::shared_ptr<const std::string> line = log_line_.result();
  draw_coloured(look().colours.text,
                line == nullptr || line->empty() ? "It has said nothing yet." : *line);
  draw_note("What it prints is in " + log_);
}

}  // namespace sluice::gui
