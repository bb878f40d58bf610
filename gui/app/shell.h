#pragma once
// All that is in the window, put together: the open run, its views, the commands, and the parts
// around them, each of which draws itself.
//
// Thread contract: the frame thread, between ImGui's NewFrame and Render.

#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/app/commands.h"
#include "gui/app/docks.h"
#include "gui/app/export_panel.h"
#include "gui/app/open_box.h"
#include "gui/app/opening_notice.h"
#include "gui/app/problem_notice.h"
#include "gui/app/run_start.h"
#include "gui/app/settings.h"
#include "gui/app/spare_time.h"
#include "gui/app/start_page.h"
#include "gui/app/top_bar.h"
#include "gui/views/session.h"
#include "gui/views/view.h"

namespace sluice::gui {

class Shell {
 public:
  // `program`: the command `sluice`, which trains; empty: as found (gui/data/child_process.h).
  // `answers`: what a change should gain (gui/data/advice.h).
  // `gives_way`: to a live run that is open (gui/app/spare_time.h).
  Shell(Settings& settings, std::string program, Answers answers, bool gives_way);
  ~Shell();

  void open_run(const std::string& path) { open_runs({path}); }
  // A database, the folder of a run, or the databases of all ranks of one.
  void open_runs(std::vector<std::string> paths);
  // The picture of merged ranks is of the instant at which they were read: now.
  void read_ranks_again();
  void close_run();
  void draw(const FrameCost& cost);

  void quit() { wants_to_quit_ = true; }
  bool wants_to_quit() const { return wants_to_quit_; }
  // Set by commands; the app looks at it between frames.
  Theme wanted_theme() const { return settings_->theme; }
  void set_theme(Theme theme) { settings_->theme = theme; }
  double wanted_scale() const { return scale_; }  // beside the display's own
  std::string window_title() const;
  // All that was asked for is there: what is drawn now stays so.
  bool is_settled() const { return awaited().empty(); }
  // What is not there yet, by name; predictions are kPredictions (gui/app/picture_wait.h).
  std::vector<std::string> awaited() const;
  // What wants frames though nothing happens.
  TimelineState::Motion motion() const { return session_.timeline.motion(); }
  Session& session() { return session_; }
  std::vector<std::unique_ptr<View>>& views() { return views_; }
  const std::vector<Command>& commands() const { return commands_; }

 private:
  void await_pieces(std::vector<std::string>& awaited) const;
  void make_commands();
  void add_file_commands();
  void add_timeline_commands();
  void add_moving_commands();
  void add_knob_commands();
  void add_window_commands();
  void dismiss();
  void draw_start_page();
  void draw_run();
  void draw_opening();
  void take_opened();
  void open_database(const Opened& opened);
  // Ended by another thread: nobody waits for the read under way.
  void end_opening();
  // The one that somebody asked for in Knobs: begun, then opened.
  void begin_new_run();

  Settings* settings_;
  std::string program_;
  Answers answers_;
  bool gives_way_;
  std::unique_ptr<Opening> opening_;  // null: nothing is being looked for or merged
  Session session_;
  std::optional<std::int64_t> spans_at_opening_;
  std::vector<std::unique_ptr<View>> views_;
  std::vector<Command> commands_;
  TopBar top_bar_;
  Docks docks_;
  SpareTime spare_time_;
  StartPage start_page_;
  RunStart new_run_;
  ProblemNotice problem_notice_;
  OpenBox open_box_;
  ExportPanel export_panel_;
  CommandPalette palette_;
  bool shows_shortcuts_ = false;
  bool had_popup_ = false;  // a menu or a box was open in the frame before
  bool wants_to_quit_ = false;
  double scale_ = 1;
  // Runs that are being closed: their threads end the read they are at, and nobody waits for that.
  std::deque<std::future<void>> closing_;
};

}  // namespace sluice::gui
