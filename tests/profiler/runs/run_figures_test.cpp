#include "profiler/runs/run_figures.h"

#include <fstream>

#include "profiler/analyze/trend.h"
#include "tests/profiler/runs/made_runs.h"

namespace sluice::runs {
namespace {

// The bytes of steps from `first` to `last` over a link, as the view of all operations has them.
double bytes_by_sql(const std::string& path, const char* link, const char* direction,
                    std::int64_t first, std::int64_t last) {
  const auto reader = require_ok(rundb::Reader::open(path));
  const std::string text = rundb::table_of(
      *reader, fmt::format("SELECT ifnull(sum(bytes + padding_bytes), 0) FROM link_bytes WHERE "
                           "link = '{}' AND direction = '{}' AND step_id BETWEEN {} AND {}",
                           link, direction, first, last));
  return std::stod(text) / static_cast<double>(last - first + 1);
}

std::string file_of(const TempFolder& folder) { return folder.file("run.db"); }

}  // namespace

TEST_CASE("a finished run has its figures, the step time without the steps that settle") {
  const TempFolder folder;
  write_made_run(file_of(folder),
                 {.meta = {{"name", "tiny"},
                           {"model", "m.toml"},
                           {"steps", "5"},
                           {"started_utc", "2026-11-25T12:39:44Z"},
                           {"buffers", "3"},
                           {"state_dir", "/out/state"}},
                  .validations = {{.step_id = 1, .loss = 4}, {.step_id = 4, .loss = 2.5}}});
  const RunFigures run = read_figures(file_of(folder));
  CHECK(run.error.empty());
  CHECK(run.state == RunState::finished);
  CHECK(run.name == "tiny");
  CHECK(run.started == "2026-11-25 12:39");
  CHECK(run.mode == "csd · nbuffer · 1 device");
  CHECK(run.step_count == 5);
  CHECK(run.loss == Approx(2.6));
  CHECK(run.validation_loss == Approx(2.5));
  CHECK(run.steady.steps == 3);
  CHECK(run.steady.median_s == Approx(0.011));
  // Three standard errors of a median: 3 x 1.2533 x 1.4826 x 1 ms / sqrt(3).
  CHECK(run.steady.noise_s == Approx(0.003 * 1.2533 * 1.4826 / std::sqrt(3.0)).epsilon(1e-3));
  CHECK(run.device_count == 1);
  CHECK(run.rank_count == 1);
  CHECK(run.marks.empty());
  CHECK(run.left_out.empty());
  CHECK(run.settings.at("buffers") == "3");
  CHECK_FALSE(run.settings.contains("state_dir"));
  CHECK_FALSE(run.settings.contains("started_utc"));
}

TEST_CASE("the bytes of a step are those that a pass over all operations finds") {
  const TempFolder folder;
  const std::string path = file_of(folder);
  write_made_run(path, {.durs = std::vector<TimeNs>(30, 10 * kMs)});
  const RunFigures run = read_figures(path);
  REQUIRE(run.bytes);
  // Of 30 steps the eight before the last one: ids 21 to 28.
  CHECK(run.bytes->steps == kSampledSteps);
  CHECK(run.bytes->drive_read == Approx(bytes_by_sql(path, "csd0.drive", "read", 21, 28)));
  CHECK(run.bytes->drive_write == Approx(bytes_by_sql(path, "csd0.drive", "write", 21, 28)));
  CHECK(run.bytes->link_write == Approx(bytes_by_sql(path, "host", "write", 21, 28)));
  CHECK(run.bytes->link_read == 0);
  CHECK(run.bytes->link_write > 0);
  SECTION("fewer steps are read where operations are many") {
    const RunFigures fewer = read_figures(path, {.operations_max = 30});
    REQUIRE(fewer.bytes);
    CHECK(fewer.bytes->steps < kSampledSteps);
    const std::int64_t first = 29 - fewer.bytes->steps;
    CHECK(fewer.bytes->drive_read == Approx(bytes_by_sql(path, "csd0.drive", "read", first, 28)));
  }
  SECTION("none are read where one step has too many, and that is said") {
    const RunFigures none = read_figures(path, {.operations_max = 3});
    CHECK_FALSE(none.bytes);
    REQUIRE(none.left_out.size() == 1);
    CHECK(none.left_out.front().find("more than are read for a table") != std::string::npos);
  }
}

TEST_CASE("a run that recorded no operations says why it has no bytes") {
  const TempFolder folder;
  write_made_run(file_of(folder), {.has_spans = false});
  const RunFigures run = read_figures(file_of(folder));
  CHECK_FALSE(run.bytes);
  CHECK(run.left_out == std::vector<std::string>{"bytes a step: no operations are recorded"});
}

TEST_CASE("the step time is of the steps since the last change") {
  const TempFolder folder;
  std::vector<TimeNs> durs(10, 50 * kMs);
  durs.resize(20, 20 * kMs);
  write_made_run(file_of(folder),
                 {.durs = durs,
                  .meta = {{"name", "a"}, {"model", "m"}, {"steps", "20"}, {"buffers", "3"}},
                  .changes = {{.step_id = 10,
                               .knob = "buffers",
                               .old_value = "3",
                               .new_value = "11",
                               .who = "settings"}}});
  const RunFigures run = read_figures(file_of(folder));
  CHECK(run.steady.steps == 8);
  CHECK(run.steady.median_s == Approx(0.02));
  CHECK(run.settings.at("buffers") == "3 -> 11");
}

TEST_CASE("a run is live, killed, ended early or simulated") {
  const TempFolder folder;
  const std::string path = file_of(folder);
  const std::vector<rundb::MetaRow> more_steps = {{"name", "a"}, {"model", "m"}, {"steps", "50"}};
  SECTION("live while its writer holds the file") {
    const auto writer = begin_made_run(path, {});
    CHECK(read_figures(path).state == RunState::live);
  }
  SECTION("killed where the file of its writer was left behind") {
    write_made_run(path);
    std::ofstream(path + "-writer") << "";
    CHECK(read_figures(path).state == RunState::killed);
  }
  SECTION("killed where what comes last is missing, too") {
    write_made_run(path, {.meta = more_steps, .has_verdicts = false});
    CHECK(read_figures(path).state == RunState::killed);
  }
  SECTION("ended early where it was stopped before its last step") {
    write_made_run(path, {.meta = more_steps});
    CHECK(read_figures(path).state == RunState::ended_early);
  }
  SECTION("simulated by its clock") {
    write_made_run(path, {.meta = {{"name", "a"}, {"clock", "simulated"}}});
    CHECK(read_figures(path).state == RunState::simulated);
  }
  SECTION("of another program, of which nobody knows how many steps it makes") {
    write_made_run(path, {.meta = {{"name", "a"}}, .has_verdicts = false});
    CHECK(read_figures(path).state == RunState::finished);
  }
}

TEST_CASE("late operations and lost records are marks") {
  const TempFolder folder;
  write_made_run(file_of(folder), {.meta = {{"name", "a"}, {"clock", "emulated"}},
                                   .lateness = {{.step_id = 0,
                                                 .stage = "state_read",
                                                 .operations = 10,
                                                 .late = 7,
                                                 .modelled_ns = 100,
                                                 .late_ns = 50}},
                                   .lost_count = 1200});
  const RunFigures run = read_figures(file_of(folder));
  CHECK(run.marks == std::vector<std::string>{"LOST records_dropped_ring_full: 1 200",
                                              "70 % of operations LATE"});
}

TEST_CASE("a damaged file is a row with its error") {
  const TempFolder folder;
  const std::string path = file_of(folder);
  std::ofstream(path) << "this is no database";
  CHECK_FALSE(read_figures(path).error.empty());
  CHECK(read_figures(path).state == RunState::unreadable);
  CHECK_FALSE(read_figures(folder.file("none.db")).error.empty());
  SECTION("also where half of it is gone") {
    const std::string cut_off = folder.file("cut.db");
    write_made_run(cut_off, {.durs = std::vector<TimeNs>(300, kMs)});
    std::filesystem::resize_file(cut_off, std::filesystem::file_size(cut_off) / 2);
    const RunFigures cut = read_figures(cut_off);
    CHECK_FALSE(cut.error.empty());
    CHECK(cut.state == RunState::unreadable);
  }
}

TEST_CASE("a run that takes too long to read lacks figures, and which is said") {
  const TempFolder folder;
  write_made_run(file_of(folder), {.durs = std::vector<TimeNs>(3000, kMs)});
  const RunFigures run = read_figures(file_of(folder), {.stops = [] { return true; }});
  CHECK(run.error.empty());
  CHECK_FALSE(run.bytes);
  CHECK_FALSE(run.left_out.empty());
  for (const std::string& left : run.left_out)
    CHECK(left.find("took too long") != std::string::npos);
}

}  // namespace sluice::runs
