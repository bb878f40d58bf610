// Run databases that were made or changed to do harm: nothing of theirs runs, nothing hangs, and a
// row that no run has is an error.

#include <fstream>
#include <iterator>
#include <limits>

#include "storage/rundb/catalog_reader.h"
#include "storage/rundb/detail/connection.h"
#include "storage/rundb/query.h"
#include "storage/rundb/span_reader.h"
#include "storage/rundb/timeline_reader.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {
namespace {

using Catch::Matchers::Contains;
using detail::Connection;

constexpr const char* kEndless =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT ";

std::string changed_run(const TempFolder& folder, const std::string& sql) {
  const std::string path = folder.file("run.db");
  std::filesystem::remove(path);
  {
    auto writer = require_ok(Writer::create(path, IfExists::refuse));
    for (int step = 0; step < 20; ++step)
      require_ok(writer->append(whole_step(*writer, step, 100)));
    require_ok(writer->close());
  }
  auto connection = require_ok(Connection::open(path, Connection::Mode::write));
  require_ok(connection.execute(sql));
  return path;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("tables and views that are not Sluice's own are refused and not looked into") {
  const TempFolder folder;
  struct Change {
    std::string sql;
    std::string words;
  };
  const std::vector<Change> changes = {
      {"DROP TABLE counter", "its table 'counter' is missing"},
      {"DROP VIEW step_phase", "its view 'step_phase' is missing"},
      {"DROP TABLE step; CREATE VIEW step AS SELECT 1 AS id", "its table 'step' is missing or not"},
      {fmt::format("DROP TABLE meta; CREATE VIEW meta AS {} i AS key, i AS value FROM n", kEndless),
       "its table 'meta' is missing or not"},
      {fmt::format("DROP VIEW link_bytes; CREATE VIEW link_bytes AS {} i FROM n", kEndless),
       "its view 'link_bytes' is missing or not"},
      {"DROP TABLE step; CREATE TABLE step (id, ts, dur, loss, grad_norm, loss_scale, tokens, "
       "skipped); INSERT INTO step VALUES (x'00', x'01', zeroblob(9), x'ff', 'a', 'b', 1, 2)",
       "its table 'step' is missing or not"},
      {"ALTER TABLE span ADD COLUMN more TEXT", "its table 'span' is missing or not"},
      {"CREATE TRIGGER evil AFTER INSERT ON step BEGIN DELETE FROM span; END",
       "has a trigger 'evil'"},
  };
  for (const Change& change : changes) {
    CAPTURE(change.sql);
    const std::string path = changed_run(folder, change.sql);
    const std::string before = bytes_of(path);
    const auto reader = Reader::open(path);
    REQUIRE_FALSE(reader.ok());
    CHECK(reader.error().code() == ErrorCode::corrupt);
    CHECK_THAT(reader.error().message(), Contains(change.words) && Contains(path));
    CHECK_FALSE(Writer::open_append(path, 5).ok());
    CHECK(bytes_of(path) == before);
  }
}

TEST_CASE("a file of another version runs nothing, also to say who wrote it") {
  const TempFolder folder;
  const std::string path =
      changed_run(folder, fmt::format("PRAGMA user_version = 99; DROP TABLE meta; "
                                      "CREATE VIEW meta AS {} i AS key, i AS value FROM n",
                                      kEndless));
  const auto reader = Reader::open(path);
  REQUIRE_FALSE(reader.ok());
  CHECK(reader.error().code() == ErrorCode::unsupported);
  CHECK_THAT(reader.error().message(), Contains("written by an unknown Sluice"));
}

TEST_CASE("a question without end ends when it is stopped, and the next one is answered") {
  const TempFolder folder;
  auto reader = require_ok(Reader::open(changed_run(folder, "SELECT 1")));
  for (const char* what : {"max(i) FROM n", "i FROM n ORDER BY i DESC"}) {
    int polls = 0;
    Query(*reader).end_if([&polls] { return ++polls == 50; });
    const auto stopped = Query(*reader).text_table(std::string(kEndless) + what);
    REQUIRE_FALSE(stopped.ok());
    CHECK(stopped.error().code() == ErrorCode::cancelled);
    CHECK(polls == 50);
    CHECK(table_of(*reader, "SELECT count(*) FROM step") == "20\n");
  }
  Query(*reader).end_if({});
  CHECK(table_of(*reader,
                 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) "
                 "SELECT max(i) FROM n") == "100000\n");
}

TEST_CASE("what others have added to a file is let be") {
  const TempFolder folder;
  const std::string path =
      changed_run(folder, fmt::format("CREATE TABLE notes (text); CREATE INDEX fast ON span (ts);"
                                      "CREATE VIEW endless AS {} i FROM n;"
                                      "CREATE VIEW circle AS SELECT * FROM circle;"
                                      "CREATE TABLE \"../../up\" (x)",
                                      kEndless));
  auto reader = require_ok(Reader::open(path));
  CHECK(require_ok(reader->steps()).size() == 20);
  for (const TableInfo& table : require_ok(Query(*reader).tables())) {
    CHECK(table.name != "endless");
    CHECK(table.name != "notes");
    CHECK(table.name.find('/') == std::string::npos);
    CHECK_FALSE(table.columns.empty());
  }
}

TEST_CASE("a trigger that slips in after the look runs nowhere") {
  const TempFolder folder;
  const std::string path = changed_run(folder, "SELECT 1");
  auto writer = require_ok(Writer::open_append(path, 20));
  {
    auto other = require_ok(Connection::open(path, Connection::Mode::write));
    require_ok(other.execute(
        "CREATE TRIGGER evil AFTER INSERT ON step BEGIN UPDATE meta SET value = 'evil'; END"));
  }
  require_ok(writer->append(whole_step(*writer, 20, 10)));
  require_ok(writer->close());
  auto connection = require_ok(Connection::open(path, Connection::Mode::read));
  CHECK(require_ok(connection.query_int64("SELECT count(*) FROM step")) == 21);
  CHECK(require_ok(connection.query_int64("SELECT count(*) FROM meta WHERE value = 'evil'")) == 0);
}

// Every question that a reader answers; how many were refused. With a sanitizer, that none
// overflows.
int refusals(Reader& reader) {
  constexpr TimeNs kLeast = std::numeric_limits<TimeNs>::min();
  constexpr TimeNs kMost = std::numeric_limits<TimeNs>::max();
  int count = 0;
  const auto ask = [&](const auto& result) {
    if (result.ok()) return;
    count += 1;
    const ErrorCode code = result.error().code();
    // SQLite's own sum() refuses an overflow.
    const bool is_sum = result.error().message().find("integer overflow") != std::string::npos;
    CHECK((code == ErrorCode::corrupt || is_sum));
  };
  ask(reader.meta());
  ask(reader.steps());
  ask(reader.steps_after(-1));
  ask(reader.stretch_begin());
  ask(CatalogReader(reader).tracks());
  ask(CatalogReader(reader).links());
  ask(CatalogReader(reader).devices());
  ask(reader.knob_changes());
  ask(SpanReader(reader).spans_between(kLeast, kMost));
  ask(SpanReader(reader).each_span_between(kLeast, kMost, [](const SpanRow&) {}));
  ask(TimelineReader(reader).spans_of_track(1, kLeast, kMost));
  ask(SpanReader(reader).spans_ended(kLeast, kMost));
  ask(SpanReader(reader).counters_between(kLeast, kMost));
  ask(reader.span_totals());
  ask(reader.link_totals());
  for (int level = 0; level < kLodLevels; ++level) {
    ask(TimelineReader(reader).lod(1, level, 0, TimeNs{1} << 60));
    ask(TimelineReader(reader).lod_of_all_tracks(level, -(TimeNs{1} << 60), TimeNs{1} << 60));
    ask(TimelineReader(reader).long_spans(1, level, kLeast, kMost));
  }
  return count;
}

TEST_CASE("a row with a number that no run has is an error wherever it is read") {
  const TempFolder folder;
  struct Column {
    const char* table;
    std::vector<const char*> columns;
  };
  const std::vector<Column> columns = {
      {"span",
       {"submit_ts", "ts", "dur", "step_id", "subgroup_id", "device_id", "layer_id", "bytes",
        "padding_bytes"}},
      {"step", {"ts", "dur", "tokens"}},
      {"lod", {"busy", "longest", "count"}},
  };
  for (const Column& column : columns) {
    for (const char* name : column.columns) {
      for (const char* value : {"9223372036854775807", "-9223372036854775807 - 1"}) {
        CAPTURE(column.table, name, value);
        const std::string path =
            changed_run(folder, fmt::format("UPDATE {} SET {} = {}", column.table, name, value));
        auto reader = require_ok(Reader::open(path));
        CHECK(refusals(*reader) > 0);
      }
    }
  }
}

TEST_CASE("ids that name nothing, or each other, are no error of the reader") {
  const TempFolder folder;
  for (const char* sql :
       {"UPDATE track SET parent_id = id", "UPDATE span SET track_id = 1 << 62, name_id = -7",
        "INSERT INTO track VALUES (-9223372036854775807, 9223372036854775807, 'x', 'y')",
        "DELETE FROM string", "DELETE FROM track", "DELETE FROM span_run",
        "UPDATE step SET loss = 9e999, grad_norm = -9e999", "UPDATE counter SET value = 9e999",
        "UPDATE string SET value = char(27) || '[2J' || char(0) || x'ff' || '</script>'"}) {
    CAPTURE(sql);
    auto reader = require_ok(Reader::open(changed_run(folder, sql)));
    CHECK(refusals(*reader) == 0);
  }
}

TEST_CASE("a text beyond all bounds is an error, not memory") {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  require_ok(require_ok(Writer::create(path, IfExists::refuse))->close());
  {
    auto connection = require_ok(Connection::open(path, Connection::Mode::create));
    require_ok(
        connection.execute("INSERT INTO meta VALUES ('big', CAST(zeroblob(40000000) AS TEXT))"));
  }
  auto reader = require_ok(Reader::open(path));
  const auto meta = reader->meta();
  REQUIRE_FALSE(meta.ok());
  CHECK_THAT(meta.error().message(), Contains("too big"));
}

}  // namespace
}  // namespace sluice::rundb
