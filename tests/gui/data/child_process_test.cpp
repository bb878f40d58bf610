#include "gui/data/child_process.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

// A program that stands in for another.
std::string script(const TempFolder& folder, const std::string& text) {
  const std::string path = folder.file("sluice");
  std::ofstream(path) << "#!/bin/sh\n" << text;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

std::string read_file(const std::string& path) { return report::text_of_file(path); }

}  // namespace

TEST_CASE("a program's output, exit code and last complaint are those it had") {
  const TempFolder folder;
  const std::string program =
      script(folder, "echo \"$@\"\necho progress >&2\necho 'no such key' >&2\nexit 2\n");
  const auto output = run_child({program, "show", "run.db"}, kNeverStopped);
  REQUIRE(output.ok());
  CHECK(output->out == "show run.db\n");
  CHECK(output->exit_code == 2);
  CHECK(why_failed(program, *output) == "no such key");
  const auto none = run_child({folder.file("none")}, kNeverStopped);
  REQUIRE(none.ok());
  CHECK(none->exit_code == 127);
}

TEST_CASE("a program that is no longer wanted is gone, and waited for") {
  const TempFolder folder;
  const std::string id_file = folder.file("id");
  const std::string program = script(folder, "echo $$ > '" + id_file + ".new'; mv '" + id_file +
                                                 ".new' '" + id_file + "'\nexec sleep 1000\n");
  const int stop = ::eventfd(0, EFD_CLOEXEC);
  bool ended_by_itself = true;
  std::thread running([&] { ended_by_itself = run_child({program}, stop).ok(); });
  REQUIRE(comes_true([&] { return std::filesystem::exists(id_file); }));
  const int process = std::stoi(read_file(id_file));
  CHECK(::kill(process, 0) == 0);
  const std::uint64_t once = 1;
  CHECK(::write(stop, &once, sizeof once) == sizeof once);
  running.join();
  CHECK_FALSE(ended_by_itself);
  CHECK(::kill(process, 0) != 0);
  ::close(stop);
}

TEST_CASE("a program that writes without end is stopped") {
  const TempFolder folder;
  const int never = ::eventfd(0, EFD_CLOEXEC);
  const auto output = run_child({script(folder, "exec yes\n")}, never);
  ::close(never);
  REQUIRE_FALSE(output.ok());
  CHECK(output.error().message().find("it wrote more than") != std::string::npos);
}

TEST_CASE("a detached program outlives the thread that began it, and its output is in the log") {
  const TempFolder folder;
  const std::string program =
      script(folder, "while [ ! -e '" + folder.file("go") + "' ]; do sleep 0.01; done\necho $1\n");
  long process = 0;
  std::thread([&] {
    process = require_ok(start_detached({program, "done"}, folder.file("log")));
  }).join();
  CHECK(::kill(static_cast<pid_t>(process), 0) == 0);
  std::ofstream(folder.file("go"));
  CHECK(comes_true([&] { return read_file(folder.file("log")) == "done\n"; }));
  CHECK_FALSE(start_detached({program}, folder.file("no folder/log")).ok());
}

}  // namespace sluice::gui
