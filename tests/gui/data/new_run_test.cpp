#include "gui/data/new_run.h"

#include "gui/data/like_run.h"
#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {

TEST_CASE("the runs that come with Sluice are found, with what they are") {
  const auto runs = sample_runs_in(std::string(SLUICE_SOURCE_DIR) + "/sample_models/runs");
  const auto tiny = std::ranges::find(runs, "tiny", &SampleRun::name);
  REQUIRE(tiny != runs.end());
  CHECK(tiny->path.ends_with("/sample_models/runs/tiny.toml"));
  CHECK(tiny->comment.starts_with("A small GPT-2-style model"));
  CHECK(tiny->comment.ends_with("storage devices."));
  CHECK(sample_runs_in("/no such folder").empty());
}

TEST_CASE("a run is started beside those before it, and says in its log why it ended") {
  const TempFolder folder;
  const std::string program = folder.file("sluice");
  std::ofstream(program) << "#!/bin/sh\necho \"$@\"\necho 'no text to read' >&2\nexit 2\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  std::filesystem::create_directories(folder.file("out/tiny"));
  const SampleRun run{.name = "tiny", .path = "/models/tiny.toml", .comment = {}};
  const StartedRun started = require_ok(start_run(program, run, folder.file("out")));
  CHECK(started.database == folder.file("out/tiny-2/run.db"));
  CHECK(comes_true([&] { return last_log_line(started.log) == "no text to read"; }));
  CHECK(report::text_of_file(started.log)
            .starts_with("train /models/tiny.toml --set output=" + folder.file("out/tiny-2")));
  CHECK_FALSE(start_run("", run, folder.file("out")).ok());
  CHECK(last_log_line(folder.file("none")).empty());
}

TEST_CASE("a run like a recorded one is begun beside it, with the command that is shown") {
  const TempFolder folder;
  const std::string program = folder.file("sluice");
  std::ofstream(program) << "#!/bin/sh\necho \"$@\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  std::filesystem::create_directories(folder.file("out/tiny-2"));
  const LikeRun like{.database = folder.file("out/tiny-2/run.db"),
                     .is_simulated = false,
                     .settings = {"buffers=5"}};
  CHECK(free_output(like) == folder.file("out/tiny"));
  std::filesystem::create_directories(folder.file("out/tiny"));
  CHECK(free_output(like) == folder.file("out/tiny-3"));
  const std::string arguments = "train --like " + like.database +
                                " --set buffers=5 --set output=" + folder.file("out/tiny-3");
  CHECK(like_command(like, free_output(like), "sluice") == "sluice " + arguments);
  const StartedRun started = require_ok(start_like(program, like));
  CHECK(started.database == folder.file("out/tiny-3/run.db"));
  CHECK(comes_true([&] { return report::text_of_file(started.log) == arguments + "\n"; }));

  const LikeRun rank{.database = folder.file("out/tiny-2/rank-0/run.db"),
                     .is_simulated = false,
                     .settings = {},
                     .rank_count = 4,
                     .is_of_rank = true};
  CHECK(like_command(rank, free_output(rank), "sluice") ==
        "mpirun -n 4 --mca mpi_yield_when_idle 1 sluice train --like " + rank.database +
            " --set output=" + folder.file("out/tiny-3"));
  LikeRun all = rank;  // merged
  all.database = folder.file("out/tiny-2/run.db");
  all.is_of_rank = false;
  CHECK(free_output(all) == folder.file("out/tiny-3"));
  CHECK(launcher_words(like).empty());

  const LikeRun simulated{
      .database = folder.file("sim.db"), .is_simulated = true, .settings = {"wire=native"}};
  std::ofstream(simulated.database) << "there";
  CHECK(like_command(simulated, free_output(simulated), "sluice") ==
        "sluice simulate --like " + simulated.database + " --set wire=native --db " +
            folder.file("sim-2.db"));
  CHECK_FALSE(start_like("", like).ok());
}

}  // namespace sluice::gui
