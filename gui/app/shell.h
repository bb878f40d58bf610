#pragma once
// All that is in the window: top bar, views in their docks, start page, what went wrong, palette.
//
// Thread contract: the frame thread, between ImGui's NewFrame and Render.

#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/app/commands.h"
#include "gui/app/settings.h"
#include "gui/app/spare_time.h"
#include "gui/data/background.h"
#include "gui/data/export_run.h"
#include "gui/data/new_run.h"
#include "gui/views/view.h"

namespace sluice::gui {

struct FrameCost {
  double last_ms = 0;   // from NewFrame to Render: the processor's time for what is drawn
  double worst_ms = 0;  // of the last hundred frames
  int vertex_count = 0;
};

class Shell {
 public:
  // `program`: the command `sluice`, which predicts; empty: as found (gui/data/child_process.h).
  // `gives_way`: to a live run that is open (gui/app/spare_time.h).
  Shell(Settings& settings, std::string program, bool gives_way);
  ~Shell();

  void open_run(const std::string& path);
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
  bool is_settled() const;
  Session& session() { return session_; }
  std::vector<std::unique_ptr<View>>& views() { return views_; }
  const std::vector<Command>& commands() const { return commands_; }

 private:
  void make_commands();
  void add_file_commands();
  void add_timeline_commands();
  void add_knob_commands();
  void add_window_commands();
  void draw_top_bar(const FrameCost& cost);
  void draw_run_state();
  void draw_recorder_state();
  void draw_dock_space();
  void lay_out(ImGuiID dock);
  void draw_views();
  void draw_start_page();
  void draw_new_runs();
  void begin_run(const SampleRun& run);
  void draw_problem();
  void draw_starting();
  void draw_open_box();
  void begin_export(ExportForm form);
  void draw_export();
  void draw_path_list(const char* id, const std::vector<std::string>& paths);
  void look_for_live_runs();

  Settings* settings_;
  std::string program_;
  bool gives_way_;
  Session session_;
  std::optional<std::int64_t> spans_at_opening_;
  std::vector<std::unique_ptr<View>> views_;
  std::vector<Command> commands_;
  CommandPalette palette_;
  bool shows_shortcuts_ = false;
  bool shows_cost_ = false;
  bool opens_box_ = false;
  bool lays_out_ = false;
  int docking_frames_ = 0;  // until windows are in their docks, none can come to the front
  bool wants_to_quit_ = false;
  double scale_ = 1;
  std::string typed_path_;
  std::vector<std::string> live_;
  double live_seen_at_ = -1e9;
  SpareTime spare_time_;
  Background<std::vector<SampleRun>> samples_;
  std::string start_problem_;  // why a run could not be begun
  std::string started_log_;    // of the run that is open, if it was begun here
  Background<std::string> log_line_;
  double log_seen_at_ = -1e9;
  Background<Exported> exported_;
  bool shows_export_ = false;
  // Runs that are being closed: their threads end the read they are at, and nobody waits for that.
  std::deque<std::future<void>> closing_;
};

}  // namespace sluice::gui
