// sluice-gui: arguments, and the errors that end it before there is a window.

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/escaped_text.h"
#include "base/refusal.h"
#include "gui/app/app.h"

namespace sluice::gui {
namespace {

constexpr const char* kFooter = R"(Examples:
  sluice-gui                                   live runs, runs opened before
  sluice-gui out/tiny/run.db                   a run, live or finished
  sluice-gui out/four-ranks                    all ranks of a run as one, by rank 0's clock
  sluice-gui ssh://trainer/home/ann/out/run.db  a run on a server, by your own ssh
  sluice-gui run.db --step 21                  why step 21 took as long as it did
  sluice-gui run.db --screenshot run.png --size 1920x1080 --theme light

Closing or ending it does nothing to a run; knobs of a live one are turned in it. Beside a live run
it takes only processor time that nothing else on this machine wants. ? shows all shortcuts, Ctrl+P
all commands. Layout, theme and recent runs are kept in
${XDG_CONFIG_HOME:-~/.config}/sluice/gui.ini.
Exit code: 0 done; 1 no display, no OpenGL 3.3, or no picture; 2 usage.)";

bool parse_size(const std::string& text, WindowOptions& window) {
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) return false;
  try {
    window.width = std::stoi(text.substr(0, cross));
    window.height = std::stoi(text.substr(cross + 1));
  } catch (const std::exception&) {
    return false;
  }
  return window.width >= 320 && window.height >= 240 && window.width <= 16384 &&
         window.height <= 16384;
}

int run(int argc, char** argv) {
  say_uncaught_refusals("sluice-gui: ");
  CLI::App app(
      "A run of Sluice in a window: why its steps take as long as they do, and the "
      "timeline of all that ran");
  AppOptions options;
  std::string size;
  app.add_option(
      "databases", options.databases,
      "a run database, or the run's folder; of a run of several ranks its folder, or the "
      "database of each. The run may be live. On a server: ssh://[user@]host[:port]/path/run.db");
  app.add_option("-o,--output", options.far.copy,
                 "of a run on a server: keep its copy there, and go on with one that is there");
  app.add_option("--far-program", options.far.program,
                 "of a run on a server: sluice at the other end (default: the one in its PATH)");
  app.add_option("--theme", options.theme, "dark or light; otherwise as last time")
      ->check(CLI::IsMember({"dark", "light"}));
  app.add_option("--scale", options.scale, "of text and everything; otherwise the display's")
      ->check(CLI::Range(0.5, 4.0));
  app.add_option("--size", size,
                 "of the window, as 1600x1000; otherwise what the screen has room for");
  app.add_option("--view", options.view, "the view to bring forward, as \"Statistics\"");
  std::string step;
  app.add_option("--step", step, "a step, or A..B, to be shown with why it took as long as it did");
  app.add_option("--screenshot", options.screenshot,
                 "when everything is read (of a live run: what it had when it was opened), save a "
                 "picture of the window (PNG) and leave");
  app.add_option("--settings", options.settings_path,
                 "where layout and theme are kept; - keeps nothing");
  bool checks = false;
  app.add_flag("--check", checks,
               "open a window that is not shown, say what draws it, and leave (`sluice doctor` "
               "asks this)");
  bool keeps_priority = false;
  app.add_flag("--ordinary-priority", keeps_priority,
               "do not leave the processors to a live run first: for a machine that something else "
               "keeps busy");
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
    if (!size.empty() && !parse_size(size, options.window))
      throw CLI::ValidationError("--size", "wants a width and a height, as 1600x1000");
    if (!step.empty()) {
      const auto range = analyze::parse_step_range("--step", step);
      if (!range.ok()) throw CLI::ValidationError(range.error().message());
      options.steps = *range;
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (checks) {
    const auto window = check_window();
    // On stdout either way: libraries have their own things to say on stderr.
    fmt::print("{}\n", window.ok() ? *window : window.error().message());
    return window.ok() ? 0 : 1;
  }
  options.gives_way = !keeps_priority;
  const Status status = at_refusal_border([&] { return run_app(options); });
  if (status.ok()) return 0;
  fmt::print(stderr, "sluice-gui: {}\n", sluice::escaped_for_terminal(status.error().message()));
  return 1;
}

}  // namespace
}  // namespace sluice::gui

int main(int argc, char** argv) { return sluice::gui::run(argc, argv); }
