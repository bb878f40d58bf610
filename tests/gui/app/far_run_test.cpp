// A run on a server in the window. An `ssh` that runs its last word here stands in for the line,
// and a link for the socket that it forwards (tests/e2e/follow_test.py has a real one).

#include <fmt/format.h>
#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "gui/data/followed_run.h"
#include "gui/views/session.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {
namespace {

// A PATH whose ssh writes its process id down, waits while there is a file `hold`, and becomes what
// should run at the other end.
struct Line {
  explicit Line(const std::string& name) : folder(test_path(name)), path(std::getenv("PATH")) {
    fs::create_directories(folder);
    std::ofstream(folder + "/ssh") << fmt::format(
        "#!/bin/sh\n"
        "for word; do\n"
        "  case $before in -L) ln -sf \"${{word#*:}}\" \"${{word%%:*}}\" ;; esac\n"
        "  before=$word\n"
        "done\n"
        "echo $$ > {0}/process\n"
        "while [ -e {0}/hold ]; do sleep 0.02; done\n"
        "exec /bin/sh -c \"exec $before\"\n",
        folder);
    fs::permissions(folder + "/ssh", fs::perms::owner_all);
    ::setenv("PATH", (folder + ":" + path).c_str(), 1);
  }
  ~Line() { ::setenv("PATH", path.c_str(), 1); }

  void cut() const {
    std::ofstream(folder + "/hold") << "";
    pid_t process = 0;
    std::ifstream(folder + "/process") >> process;
    if (process > 0) ::kill(process, SIGKILL);
  }
  void mend() const { fs::remove(folder + "/hold"); }

  const std::string folder;
  const std::string path;
};

}  // namespace

TEST_CASE("a run on a server is followed and turned, and its line is cut and back", "[long]") {
  if (!can_run()) return;
  const Line line("line");
  ChildProcess training(train_command("server", 100'000));
  const std::string run = test_path("server") + "/run.db";
  AppOptions options = options_for("ssh://trainer" + run);
  options.far.program = sluice_program();
  const auto is_there = [&] { return fs::exists(run + ".socket"); };
  for (int i = 0; i < 6000 && !is_there(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(is_there());
  const std::string problem = drive(options, [&](const Drive& d) {
    await_live_run(d);
    Session& session = d.session();
    const std::shared_ptr<const FollowedRun> far = session.pieces.far;
    IM_CHECK(far != nullptr);
    IM_CHECK_STR_EQ(far->host().c_str(), "trainer");
    d.picture_with_all("far run");
    session.control.set_now({"buffers=5"});
    IM_CHECK(d.comes_true([&] { return value_in_force(d, "buffers") == "5"; }));
    line.cut();
    IM_CHECK(d.comes_true([&] { return far->words() == "cut, trying again"; }));
    d.picture_with_all("far run cut");
    const std::size_t steps = session.pieces.steps().size();
    line.mend();
    IM_CHECK(d.comes_true([&] { return session.pieces.steps().size() > steps + 3; }));
    IM_CHECK(far->words() != "cut, trying again");
  });
  CHECK(problem == "");
}

TEST_CASE("a server that is not there is said in words") {
  if (!can_run()) return;
  const std::string problem =
      drive(options_for("ssh://-oProxyCommand=x/run.db"), [&](const Drive& d) {
        IM_CHECK(d.comes_true([&] { return d.test->ItemExists("**/Close"); }));
        d.picture_with_all("far run refused");
      });
  CHECK(problem == "");
}

}  // namespace sluice::gui
