// The program and the window system: events, no display, no OpenGL.

#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"
#include "tests/skip.h"

namespace sluice::gui {

TEST_CASE("real events of the window system reach the program") {
  if (!can_run()) return;
  if (!has_program("xdotool")) return skip_test("there is no xdotool (Debian: xdotool)");
  ChildProcess program("timeout 600 " + gui_program() + " " + trained_run() + " --settings -");
  // Ctrl+Q through the X server ends it; anything else would leave it there.
  const int code =
      ChildProcess(
          "timeout 600 sh -c 'id=$(xdotool search --sync --onlyvisible --class sluice-gui) && "
          "sleep 1 && xdotool windowfocus --sync $id mousemove --window $id 900 400 "
          "click --repeat 3 4 mousemove 301 300 key ctrl+q'")
          .wait();
  CHECK(code == 0);
  CHECK(program.wait() == 0);
}

TEST_CASE("a chord that is shorter than a frame is not lost") {
  if (!can_run()) return;
  if (!has_program("xdotool")) return skip_test("there is no xdotool (Debian: xdotool)");
  ChildProcess program(gui_program() + " " + trained_run() + " --settings -");
  REQUIRE(ChildProcess("timeout 60 sh -c 'id=$(xdotool search --sync --onlyvisible --class "
                       "sluice-gui) && sleep 1 && xdotool windowfocus --sync $id mousemove "
                       "--window $id 900 400 keydown ctrl'")
              .wait() == 0);
  // Ctrl is down for some frames. Then the program stands still, so that all that happens
  // meanwhile, Ctrl's release first, is there for one frame.
  ChildProcess("sleep 1").wait();
  REQUIRE(::kill(program.id(), SIGSTOP) == 0);
  CHECK(ChildProcess("timeout 60 xdotool keydown q keyup ctrl keyup q").wait() == 0);
  REQUIRE(::kill(program.id(), SIGCONT) == 0);
  ChildProcess guard("sh -c 'sleep 60; kill " + std::to_string(program.id()) + "'");
  CHECK(program.wait() == 0);
}

TEST_CASE("a picture is taken of a live run") {
  if (!can_run()) return;
  const std::string database = test_path("pictured") + "/run.db";
  const std::string picture = test_path("pictured.png");
  ChildProcess training(train_command("pictured", 400));
  REQUIRE(ChildProcess("timeout 600 sh -c 'until [ -s " + database + " ]; do sleep 0.1; done'")
              .wait() == 0);
  CHECK(ChildProcess("timeout 600 " + gui_program() + " " + database +
                     " --settings - --ordinary-priority --screenshot " + picture)
            .wait() == 0);
  CHECK(fs::file_size(picture) > 10'000);
}

TEST_CASE("without a display the program says so and ends with 1") {
  if (!fs::exists(program_folder() + "/sluice-gui")) return skip_test("there is no sluice-gui");
  CHECK(ChildProcess("env -u DISPLAY -u WAYLAND_DISPLAY " + gui_program()).wait() == 1);
  CHECK(ChildProcess(gui_program() + " --theme pink").wait() == 2);
  CHECK(ChildProcess(gui_program() + " --help").wait() == 0);
}

TEST_CASE("a display without OpenGL 3.3 is said, with what to do, and the program ends with 1") {
  if (!can_run()) return;
  const std::string said = test_path("said");
  const std::string program = " timeout 600 " + gui_program() + " --settings - ";
  const auto refuses = [&](const std::string& environment) {
    const int code =
        ChildProcess("sh -c '" + environment + program + " > " + said + " 2>&1'").wait();
    std::stringstream text;
    text << std::ifstream(said).rdbuf();
    INFO(text.str());
    CHECK(code == 1);
    CHECK(text.str().find("this display gives no OpenGL 3.3") != std::string::npos);
    CHECK(text.str().find("libgl1-mesa-dri") != std::string::npos);
  };
  refuses("MESA_GL_VERSION_OVERRIDE=2.1");
  std::string why;
  const auto bare = VirtualDisplay::start(why, false);
  REQUIRE(bare != nullptr);
  refuses("");
}

}  // namespace sluice::gui
