// A run whose recording level goes through all levels while it trains: what the database holds of
// each stretch is what the level promises.

#include "profiler/collect/collector.h"
#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"
#include "tests/core/train/small_run.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::collect {
namespace {

// Tracks of transfers name them.
std::vector<rundb::LinkRow> links_of(const platform::Platform& platform) {
  std::vector<rundb::LinkRow> links;
  for (const platform::Link& link : platform.links) {
    links.push_back({.id = std::ssize(links), .name = link.name});
  }
  return links;
}

using record::Level;
using rundb::require_ok;
using rundb::table_of;

struct Stretch {
  int first_step;
  Level level;
};
// Up, down and over several levels at once.
constexpr Stretch kStretches[] = {{0, Level::all},    {3, Level::transfers}, {6, Level::steps},
                                  {9, Level::off},    {12, Level::steps},    {15, Level::transfers},
                                  {18, Level::all},   {21, Level::off},      {24, Level::all},
                                  {27, Level::steps}, {30, Level::all}};
constexpr int kSteps = 33;

enum class Levels { as_planned, all_the_time };

void train_through(Levels levels, const SmallRun& files, const std::string& path) {
  const settings::RunConfig config =
      require_ok(files.config({"steps=" + std::to_string(kSteps), "state_dir=" + path + ".state"}));
  const model::ModelFactory factory = arithmetic_factory();
  record::Recorder recorder;
  train::TrainingRun::Request request;
  request.config = &config;
  request.factory = &factory;
  request.recorder = &recorder;
  const auto run = require_ok(train::TrainingRun::open(request));
  auto collector = require_ok(
      Collector::start(recorder, require_ok(rundb::Writer::create(path, rundb::IfExists::refuse)),
                       {.links = links_of(run->plan().platform)},
                       {.flush_interval = std::chrono::milliseconds(1), .cost_share_max = 1e9}));
  std::vector<session::PlannedChange> changes;
  for (const Stretch& stretch : kStretches) {
    if (stretch.first_step == 0) continue;
    const Level level = levels == Levels::as_planned ? stretch.level : Level::all;
    changes.push_back({stretch.first_step, {std::string("record=") + record::level_name(level)}});
  }
  require_ok(run->prepare(session::StartFrom::new_state));
  Quiet observer;
  (void)require_ok(train::train(*run, {{&observer}, {}}, changes));
  require_ok(collector->stop());
  REQUIRE(recorder.rings().at(0)->dropped_count() == 0);
}

std::int64_t count(rundb::Reader& reader, const std::string& sql) {
  return std::stoll(table_of(reader, sql));
}

// The times at which the database says that the level changed, the begin first.
std::vector<std::int64_t> check_instants(rundb::Reader& reader) {
  std::string wanted = "level all\n";
  for (std::size_t i = 1; i < std::size(kStretches); ++i) {
    wanted += fmt::format("level {} (from {}, by user)\n", record::level_name(kStretches[i].level),
                          record::level_name(kStretches[i - 1].level));
  }
  const std::string from =
      " FROM span JOIN string ON string.id = name_id JOIN track ON track.id = track_id "
      "WHERE track.kind = 'recorder' AND value LIKE 'level %' ORDER BY ts";
  REQUIRE(table_of(reader, "SELECT value" + from) == wanted);
  std::vector<std::int64_t> begins;
  for (const auto& row : require_ok(rundb::Query(reader).text_table("SELECT ts" + from)).rows)
    begins.push_back(std::stoll(row[0]));
  return begins;
}

TEST_CASE("a run that goes through all levels holds of each stretch what its level promises") {
  const SmallRun files;
  const std::string path = files.folder.file("levels.db");
  const std::string whole_path = files.folder.file("whole.db");
  train_through(Levels::as_planned, files, path);
  train_through(Levels::all_the_time, files, whole_path);
  auto reader = require_ok(rundb::Reader::open(path));
  auto whole = require_ok(rundb::Reader::open(whole_path));
  std::vector<std::int64_t> begins = check_instants(*reader);
  begins.push_back(std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = 0; i < std::size(kStretches); ++i) {
    const Level level = kStretches[i].level;
    const int first_step = kStretches[i].first_step;
    const int end_step = i + 1 < std::size(kStretches) ? kStretches[i + 1].first_step : kSteps;
    INFO("steps " << first_step << " to " << end_step << " at " << record::level_name(level));
    const std::string steps = fmt::format("BETWEEN {} AND {}", first_step, end_step - 1);
    const std::string times = fmt::format(">= {} AND ts < {}", begins[i], begins[i + 1]);

    REQUIRE(count(*reader, "SELECT count(*) FROM step WHERE id " + steps) ==
            (level >= Level::steps ? end_step - first_step : 0));
    // All operations of its steps or none, by their step and by their time.
    const std::string by_step = "SELECT step_id, count(*) FROM span WHERE step_id " + steps +
                                " GROUP BY step_id ORDER BY step_id";
    REQUIRE(table_of(*reader, by_step) ==
            (level >= Level::transfers ? table_of(*whole, by_step) : ""));
    REQUIRE(count(*reader, "SELECT count(*) FROM span WHERE step_id " + steps) ==
            count(*reader,
                  "SELECT count(*) FROM span JOIN track ON track.id = track_id WHERE track.kind "
                  "<> 'recorder' AND step_id IS NOT NULL AND ts " +
                      times));
    REQUIRE((count(*reader, "SELECT count(*) FROM flow JOIN span ON span.id = to_span WHERE ts " +
                                times) > 0) == (level >= Level::all));
    REQUIRE((count(*reader,
                   "SELECT count(*) FROM counter JOIN track ON track.id = track_id WHERE "
                   "name LIKE 'csd%' AND ts " +
                       times) > 0) == (level >= Level::all));
  }
}

TEST_CASE("a run that began with record=off says that there is nothing to record into") {
  const SmallRun files;
  const auto trained = train_small(files, {"record=off", "steps=4"}, session::StartFrom::new_state,
                                   {}, std::vector<session::PlannedChange>{{2, {"record=all"}}});
  REQUIRE_FALSE(trained.ok());
  REQUIRE_THAT(trained.error().message(), Catch::Matchers::Contains("begin with record=steps"));
}

}  // namespace
}  // namespace sluice::collect
