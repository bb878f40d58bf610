#pragma once
// The program: a window, and in it the shell, drawn when something changed.
//
// Thread contract: the main thread.

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "gui/app/window.h"
#include "gui/data/advisor.h"
#include "gui/data/followed_run.h"
#include "profiler/analyze/step_range.h"

namespace sluice::gui {

class Shell;
struct FrameCost;

struct AppOptions {
  std::vector<std::string> databases;  // of one run (Shell::open_runs); none: the start page
  std::string theme;                   // "dark", "light"; empty: as last time
  double scale = 0;                    // 0: the display's
  WindowOptions window;
  std::string screenshot;                        // draw, save the picture there, and leave
  std::string view;                              // brought forward
  std::optional<analyze::StepRange> steps = {};  // shown and explained, once they are there
  std::string sluice;           // the program that trains; empty: beside this one, else in PATH
  Answers answers = advice_on;  // what a change should gain
  std::string settings_path;    // empty: settings_path(); "-": nothing is kept
  FarChoice far = {};           // how runs on servers are followed
  bool gives_way = true;        // to a live run that is open (gui/app/spare_time.h)
};

// For tests, which drive the program from within; the program itself has none.
struct AppHooks {
  std::function<void(Shell&)> started = {};
  std::function<void()> before_show = {};  // the frame is drawn, not yet visible
  std::function<void()> after_show = {};
  std::function<void(const FrameCost&)> drawn = {};
  std::function<bool()> is_busy = {};  // draw without waiting for events
  // Asked once a frame; false: the frame is made, and no pixel of it.
  std::function<bool()> is_shown = {};
  std::function<void()> ending = {};  // ImGui's context is still there
  std::function<void()> ended = {};   // it is gone
};

// An error: there is no display, or no OpenGL 3.3 on it, or no picture could be written.
Status run_app(const AppOptions& options, const AppHooks& hooks = {});

// Opens a window that is not shown, and says what draws it. An error: as run_app()'s.
Result<std::string> check_window();

// Saves what is on the screen as a PNG file.
Status save_screenshot(int width, int height, const std::string& path);

}  // namespace sluice::gui
