#include "profiler/analyze/link_use.h"

#include <catch2/catch.hpp>

#include "storage/rundb/writer.h"
#include "tests/profiler/analyze/made_step.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::analyze {

using rundb::require_ok;

TEST_CASE("a link's load is what it moved, of what it could have") {
  MadeStep made(100);
  made.add("state_read", 0, 40, {.device = 0, .subgroup = 0, .bytes = 30'000'000});
  made.add("state_read", 20, 60, {.device = 0, .subgroup = 1, .bytes = 30'000'000});
  const LinkUse use(made.data());
  REQUIRE(use.loads().size() == 1);
  const LinkLoad& load = use.loads()[0];
  CHECK(load.name == "csd0.drive");
  CHECK_FALSE(load.is_shared);
  CHECK(load.bytes == 60'000'000);
  CHECK(load.busy_ns == 60 * kMs);
  CHECK(load.bytes_per_s == Approx(1e9));
  CHECK(load.share == Approx(0.6));
}

TEST_CASE("of a transfer that is partly in the step, that part counts") {
  MadeStep made(100);
  made.add("state_write", 80, 120, {.device = 0, .subgroup = 0, .bytes = 40'000'000});
  const LinkUse use(made.data());
  CHECK(use.loads()[0].bytes == 20'000'000);
  CHECK(use.loads()[0].busy_ns == 20 * kMs);
}

TEST_CASE("on a half-duplex link both directions count") {
  MadeStep made(100, MadeStep::Drives::half_duplex);
  made.add("state_read", 0, 10, {.device = 0, .subgroup = 0});
  made.add("state_write", 10, 90, {.device = 0, .subgroup = 0});
  const LinkUse use(made.data());
  const auto fullest = use.fullest(*made.data().spans[0].track);
  REQUIRE(fullest.has_value());
  CHECK(fullest->name == "csd0.drive");
  CHECK_FALSE(use.can_read_beside(made.data().spans[1]));
}

TEST_CASE("a track that moves nothing has no fullest link") {
  MadeStep made(100);
  made.add("forward", 0, 100);
  const LinkUse use(made.data());
  CHECK(use.loads().empty());
  CHECK_FALSE(use.fullest(*made.data().spans[0].track).has_value());
}

TEST_CASE("links that nothing crosses but what ranks send one another are known, of every rank") {
  const rundb::TempFolder folder;
  const auto writer =
      require_ok(rundb::Writer::create(folder.file("run.db"), rundb::IfExists::refuse));
  require_ok(writer->write_facts({.meta = {{std::string(kMergedRanks), "2"}},
                                  .links = {{.id = 0, .name = "host"},
                                            {.id = 1, .name = "node.between"},
                                            {.id = 2, .name = "rank 1: node.between"},
                                            {.id = 3, .name = "shared.both"}}}));
  const auto add = [&writer](const std::string& root, std::vector<rundb::TrackLink> links) {
    const std::int64_t parent = writer->track_id({}, "link", root, {});
    writer->track_id(parent, "link", root + " all_reduce", links);
  };
  const auto read = rundb::Direction::read;
  add("rank 0: csd0", {{0, read}, {3, read}});
  add("rank 0: ranks", {{1, read}, {3, read}});
  add("rank 1: ranks", {{2, read}});
  require_ok(writer->append(rundb::Batch()));
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunInfo info = require_ok(load_run_info(*reader));
  CHECK(links_between_ranks(info) == std::set<std::int64_t>{1, 2});
}

TEST_CASE("a direction is said as people read it") {
  LinkLoad load{.name = "csd0.drive"};
  CHECK(direction_text(load) == "out of drives");
  load.direction = rundb::Direction::write;
  CHECK(direction_text(load) == "into drives");
  load.name = "accelerator0.link";
  CHECK(direction_text(load) == "into accelerator");
  load.is_between_ranks = true;
  CHECK(direction_text(load) == "to other ranks");
}

}  // namespace sluice::analyze
