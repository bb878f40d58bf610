#include "gui/app/problem_notice.h"

#include "gui/app/notice.h"
#include "gui/app/window.h"
#include "gui/data/new_run.h"
#include "gui/data/opening.h"
#include "gui/views/run_pieces.h"
#include "gui/widgets/look.h"

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
  Notice notice("Problem", has_rest ? Notice::Place::bar : Notice::Place::panel,
                is_waiting ? look().colours.line : look().colours.red);
  if (!notice.is_shown()) return choice;
  if (is_waiting) {
    notice.say("Opening", pieces.place());
  } else if (!has_rest && !log_.empty()) {
    say_starting(notice);
    if (notice.button("Close the run")) choice = NoticeChoice::close_run;
  } else {
    notice.say(has_rest ? "The run can no longer be read" : "This run cannot be shown",
               pieces.run->problem, "It is tried again twice a second.");
    if (notice.button("Close the run")) choice = NoticeChoice::close_run;
    if (notice.button("Open another\u2026")) choice = NoticeChoice::open_another;
  }
  return choice;
}

// The run has no database yet; what it prints meanwhile is all there is to see.
void ProblemNotice::say_starting(Notice& notice) {
  const double now = ImGui::GetTime();
  if (now - log_seen_at_ > 0.5 && !log_line_.is_working()) {
    log_seen_at_ = now;
    log_line_.begin([log = log_] { return last_log_line(log); }, Window::wake);
  }
  const std::shared_ptr<const std::string> line = log_line_.result();
  notice.say("The run is starting",
             line == nullptr || line->empty() ? "It has said nothing yet." : *line,
             "What it prints is in " + log_);
}

}  // namespace sluice::gui
