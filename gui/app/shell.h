#pragma once
// All that is in the window, put together: the open run, its views, the commands, and the parts
// around them, each of which draws itself.
//
// Thread contract: the frame thread, between ImGui's NewFrame and Render.

#include <memory>
#include <string>
#include <vector>

#include "gui/app/commands.h"
#include "gui/data/advisor.h"
#include "gui/views/view.h"

namespace sluice::gui {

class RunDoor;
enum class Theme;
struct FarChoice;
struct FrameCost;
struct Settings;
struct ShellParts;

class Shell {
 public:
  // `program`: the command `sluice`, which trains; empty: as found (gui/data/child_process.h).
  // `answers`: what a change should gain (gui/data/advice.h).
  // `gives_way`: to a live run that is open (gui/app/spare_time.h).
  Shell(Settings& settings, std::string program, Answers answers, bool gives_way);
  ~Shell();

  // How runs on servers are followed, from now on.
  void choose_far(FarChoice far);
  void open_run(const std::string& path) { open_runs({path}); }
  // A database, the folder of a run, ssh://host/path/run.db, or the databases of all ranks of one.
  void open_runs(std::vector<std::string> paths);
  void close_run();
  void draw(const FrameCost& cost);

  void quit() { wants_to_quit_ = true; }
  bool wants_to_quit() const { return wants_to_quit_; }
  // Set by commands; the app looks at it between frames.
  Theme wanted_theme() const;
  void set_theme(Theme theme);
  double wanted_scale() const { return scale_; }  // beside the display's own
  std::string window_title() const;
  // All that was asked for is there: what is drawn now stays so.
  bool is_settled() const { return awaited().empty(); }
  // The pieces that are not there yet, by name; predictions are kPredictions
  // (gui/app/picture_wait.h).
  std::vector<std::string> awaited() const;
  Session& session() { return *session_; }
  const Session& session() const { return *session_; }
  std::vector<std::unique_ptr<View>>& views() { return views_; }
  const std::vector<Command>& commands() const { return commands_; }

 private:
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
  // The one that somebody asked for in Knobs: begun, then opened.
  void begin_new_run();

  Settings* settings_;
  const std::string program_;
  const bool gives_way_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<RunDoor> door_;
  std::unique_ptr<ShellParts> parts_;
  std::vector<std::unique_ptr<View>> views_;
  std::vector<Command> commands_;
  bool had_popup_ = false;  // a menu or a box was open in the frame before
  bool wants_to_quit_ = false;
  double scale_ = 1;
};

}  // namespace sluice::gui
