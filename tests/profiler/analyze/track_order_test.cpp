#include "profiler/analyze/track_order.h"

#include <catch2/catch.hpp>

#include "tests/made_stages.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::analyze {
namespace {

struct MadeTracks {
  RunInfo info;

  MadeTracks() {
    for (const stages::StageInfo& stage : stages::kStages) {
      const auto id = static_cast<std::int64_t>(stages::index_of(stage.stage)) + 40;
      info.strings[id] = stage.name;
      info.stages[id] = made_stage(stage, id);
    }
  }
  std::int64_t add(std::int64_t parent_id, const std::string& kind, const std::string& name) {
    const auto id = static_cast<std::int64_t>(info.tracks.size());
    TrackInfo& track = info.tracks[id];
    track.id = id;
    track.parent_id = parent_id;
    track.kind = kind;
    track.name = track.label = name;
    return id;
  }
  std::string names() const {
    std::string text;
    for (const std::int64_t id : drawing_order(info)) text += info.tracks.at(id).name + "\n";
    return text;
  }
};

TEST_CASE("a device's tracks stand as operations pass its stages, whenever they were made") {
  MadeTracks made;
  const std::int64_t csd1 = made.add(-1, "device", "csd1");
  const std::int64_t csd0 = made.add(-1, "device", "csd0");
  made.add(csd0, "device", "csd0 parameters_up over host");
  made.add(csd0, "device", "csd0 update on unit 10");
  made.add(csd0, "device", "csd0 update on unit 0");
  made.add(csd0, "device", "csd0 reads under way (transfers)");
  made.info.tracks.at(5).kind = "counter";
  made.add(csd1, "device", "csd1 state_write over drive");
  made.add(csd0, "device", "csd0 update on unit 1");
  made.add(csd0, "device", "csd0 something else");
  made.add(csd1, "device", "csd1 state_read over drive, internal");
  made.add(csd0, "device", "csd0 state_read over drive");
  made.add(-1, "compute", "compute");
  CHECK(made.names() ==
        "compute\n"
        "csd1\ncsd1 state_read over drive, internal\ncsd1 state_write over drive\n"
        "csd0\ncsd0 state_read over drive\ncsd0 update on unit 0\ncsd0 update on unit 1\n"
        "csd0 update on unit 10\ncsd0 parameters_up over host\ncsd0 something else\n"
        "csd0 reads under way (transfers)\n");
}

// A run whose last track stands under `above` others.
Result<RunInfo> info_of_chain(int above) {
  const rundb::TempFolder folder;
  auto writer =
      rundb::require_ok(rundb::Writer::create(folder.file("run.db"), rundb::IfExists::refuse));
  std::optional<std::int64_t> parent;
  for (int i = 0; i <= above; ++i) parent = writer->track_id(parent, "host", fmt::format("t{}", i));
  rundb::require_ok(writer->append({}));
  rundb::require_ok(writer->close());
  const auto reader = rundb::require_ok(rundb::Reader::open(folder.file("run.db")));
  return load_run_info(*reader);
}

TEST_CASE("tracks that stand under more than any run records are refused, before anybody walks") {
  const auto deepest = info_of_chain(kTracksAboveMax);
  REQUIRE(deepest.ok());
  CHECK(drawing_order(*deepest).size() == kTracksAboveMax + 1);
  const auto deeper = info_of_chain(kTracksAboveMax + 1);
  REQUIRE_FALSE(deeper.ok());
  CHECK(deeper.error().code() == ErrorCode::corrupt);
  CHECK_THAT(deeper.error().message(), Catch::Contains("stands under more than 64 others"));
}

TEST_CASE("tracks that name one another as parents have an order") {
  MadeTracks made;
  made.add(1, "device", "a");
  made.add(0, "device", "b");
  CHECK(drawing_order(made.info).size() == 2);
}

}  // namespace
}  // namespace sluice::analyze
