// What a C program recorded, read back.

#include <cmath>
#include <fstream>
#include <sstream>

#include "profiler/analyze/critical_path.h"
#include "profiler/analyze/run_data.h"
#include "storage/rundb/reader.h"
#include "tests/profiler/c_api/c_program.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice {
namespace {

using rundb::Reader;
using rundb::require_ok;
using rundb::table_of;
using rundb::TempFolder;

void require_done(const char* wrong) {
  if (wrong != nullptr) FAIL(wrong);
}

constexpr const char* kSpans =
    " FROM span JOIN track ON track.id = track_id JOIN string ON string.id = name_id "
    "WHERE track.kind = 'thread' ";

TEST_CASE("what a C program records are rows like any other's") {
  const TempFolder folder;
  require_done(record_all_kinds(folder.file("run.db").c_str()));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader, std::string("SELECT track.name, value, step_id, bytes, ts - submit_ts, "
                                        "CASE value WHEN 'read' THEN dur END") +
                                kSpans + "ORDER BY span.ts") ==
          "disk | begin | NULL | 0 | 0 | NULL\nqueue 1 | read | 0 | 4096 | 10 | 20\n"
          "disk | use | 0 | 0 | 0 | NULL\n");
  REQUIRE(table_of(*reader,
                   "SELECT track.name, parent.name, value FROM counter JOIN track ON track.id = "
                   "track_id JOIN track AS parent ON parent.id = track.parent_id WHERE parent.name "
                   "= 'disk'") == "depth (requests) | disk | 2.5\n");
  REQUIRE(table_of(*reader,
                   "SELECT x.value, y.value FROM flow JOIN span a ON a.id = from_span JOIN span b "
                   "ON b.id = to_span JOIN string x ON x.id = a.name_id JOIN string y ON y.id = "
                   "b.name_id") == "read | use\n");
  REQUIRE(table_of(*reader, "SELECT id, loss, grad_norm, tokens, dur > 0 FROM step ORDER BY id") ==
          "0 | 3.5 | NULL | 64 | 1\n1 | NULL | NULL | 0 | 1\n");
  REQUIRE(table_of(*reader, "SELECT value FROM meta WHERE key = 'name'") == "all kinds\n");
  REQUIRE(require_ok(reader->losses()).empty());
}

TEST_CASE("a verdict knows what a C program says of its links and stages") {
  const TempFolder folder;
  require_done(record_links_and_stages(folder.file("run.db").c_str()));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  CHECK(table_of(*reader, "SELECT id, name, kind FROM device ORDER BY id") ==
        "0 | nvme0 | drive\n1 | nvme1 | drive\n");
  CHECK(
      table_of(*reader, "SELECT name, read_bytes_per_s, write_bytes_per_s FROM link ORDER BY id") ==
      "nvme0.drive | 1000000000.0 | 500000000.0\nnvme1.drive | 0.0 | 0.0\npcie | 0.0 | 0.0\n");
  CHECK(
      table_of(*reader,
               "SELECT value, device_id, bytes, stage.kind, place, phase FROM span JOIN string ON "
               "string.id = span.name_id JOIN stage ON stage.name_id = span.name_id ORDER BY ts") ==
      "load | 0 | 10000 | transfer | device | NULL\n"
      "think | NULL | 0 | kernel | compute | forward\n"
      "keep | 0 | 5000 | transfer | device | NULL\n");
  CHECK(
      table_of(*reader, "SELECT link, direction, bytes FROM link_bytes ORDER BY link, direction") ==
      "nvme0.drive | read | 10000\nnvme0.drive | write | 5000\npcie | read | 10000\n");

  const analyze::RunInfo info = require_ok(analyze::load_run_info(*reader));
  const auto steps = require_ok(reader->steps());
  const analyze::StepData step = require_ok(analyze::load_step(*reader, info, steps.at(0)));
  const analyze::StepVerdict verdict = analyze::verdict_of(step);
  const auto ns_of = [&verdict](analyze::Cause cause) {
    return std::llround(verdict.share_of(cause) * static_cast<double>(verdict.dur));
  };
  CHECK(ns_of(analyze::Cause::read) == 20000);
  CHECK(ns_of(analyze::Cause::compute) == 60000);
  CHECK(ns_of(analyze::Cause::write) == 20000);
}

TEST_CASE("threads record side by side, and those that come later use the rings of the gone") {
  const TempFolder folder;
  require_done(record_from_threads(folder.file("run.db").c_str(), 3, 2000));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader, std::string("SELECT count(*), sum(bytes)") + kSpans) ==
          std::to_string(6 * 2000) + " | " + std::to_string(6LL * 2000 * 1999 / 2) + "\n");
}

TEST_CASE("at each level a C program's database holds what the level promises") {
  const TempFolder folder;
  require_done(record_at_each_level(folder.file("run.db").c_str()));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  // Twice from all down to off; an instant and a span each.
  REQUIRE(table_of(*reader, "SELECT id FROM step ORDER BY id") == "0\n1\n2\n4\n5\n6\n");
  REQUIRE(table_of(*reader, std::string("SELECT value, count(*)") + kSpans +
                                "GROUP BY value ORDER BY value") == "all | 4\ntransfers | 4\n");
  REQUIRE(table_of(*reader,
                   "SELECT name, count(*) FROM counter JOIN track ON track.id = track_id "
                   "WHERE name IN ('off', 'steps', 'transfers', 'all') GROUP BY name") ==
          "all | 2\n");
  REQUIRE(table_of(*reader,
                   "SELECT value, count(*) FROM flow JOIN span ON span.id = to_span JOIN string ON "
                   "string.id = name_id GROUP BY value") == "all | 2\n");
  REQUIRE(table_of(*reader,
                   "SELECT value FROM span JOIN string ON string.id = name_id WHERE value LIKE "
                   "'level %' ORDER BY ts") ==
          "level all\nlevel transfers (from all, by user)\nlevel steps (from transfers, by user)\n"
          "level off (from steps, by user)\nlevel all (from off, by user)\n"
          "level transfers (from all, by user)\nlevel steps (from transfers, by user)\n"
          "level off (from steps, by user)\n");
}

TEST_CASE("tracks, names and spans that were never given out are refused and counted") {
  const TempFolder folder;
  require_done(record_what_is_unknown(folder.file("run.db").c_str()));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader, std::string("SELECT count(*)") + kSpans) == "1\n");
  REQUIRE(table_of(*reader, "SELECT count(*) FROM flow") == "0\n");
  REQUIRE(table_of(*reader, "SELECT parent_id FROM track WHERE name LIKE '%unknown'") == "NULL\n");
}

TEST_CASE("a recording that cannot begin says why, and leaves other files alone") {
  const TempFolder folder;
  require_done(start_where_it_cannot(folder.file("no/such/folder/run.db").c_str()));
  std::ofstream(folder.file("letter.txt")) << "dear reader";
  require_done(start_where_it_cannot(folder.file("letter.txt").c_str()));
  std::ifstream letter(folder.file("letter.txt"));
  std::string text;
  std::getline(letter, text);
  REQUIRE(text == "dear reader");
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("the example of the page is the program that was compiled") {
  const std::string root = SLUICE_SOURCE_DIR;
  REQUIRE_THAT(text_of(root + "/docs/recording.md"),
               Catch::Matchers::Contains(
                   "```c\n" + text_of(root + "/tests/profiler/c_api/example.c") + "```\n"));
}

}  // namespace
}  // namespace sluice
