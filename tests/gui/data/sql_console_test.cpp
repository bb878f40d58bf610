#include "gui/data/sql_console.h"

#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

constexpr const char* kEndless =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

std::shared_ptr<const SqlAnswer> answer_to(SqlConsole& console, const std::string& sql) {
  const std::uint64_t number = console.ask(sql);
  REQUIRE(comes_true([&] {
    const auto answer = console.answer();
    return answer != nullptr && answer->number == number;
  }));
  return console.answer();
}

}  // namespace

TEST_CASE("the console answers with names, NULL and an end to many rows, and cannot write") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  SqlConsole console(folder.file("run.db"), [] {});
  const auto steps = answer_to(console, "SELECT id AS step, NULL AS empty FROM step;");
  CHECK(steps->problem == "");
  CHECK(steps->columns == std::vector<std::string>{"step", "empty"});
  REQUIRE(steps->rows.size() == 3);
  CHECK(steps->rows[2] == std::vector<std::string>{"2", "NULL"});

  const auto many = answer_to(console,
                              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                              "LIMIT 1000000) SELECT i FROM n");
  CHECK(many->rows.size() == kSqlRowsMax);
  CHECK(many->is_cut);
  CHECK(many->problem.empty());

  // SQLite's own words, and nothing of how it was called or which file it is.
  CHECK(answer_to(console, "SELEC 1")->problem == "near \"SELEC\": syntax error");
  CHECK(answer_to(console, "SELECT no FROM step")->problem == "no such column: no");
  CHECK_FALSE(answer_to(console, "DELETE FROM step")->problem.empty());
  CHECK(answer_to(console, "SELECT count(*) FROM step")->rows[0][0] == "3");
}

TEST_CASE("a column that holds ids of spans is known by where it comes from, not by its name") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  SqlConsole console(folder.file("run.db"), [] {});
  const auto column = [&](const std::string& sql) { return answer_to(console, sql)->span_column; };
  CHECK(column("SELECT name_id, id FROM span") == 1);
  CHECK(column("SELECT dur, span.id AS which FROM span JOIN track ON track.id = track_id;") == 1);
  CHECK(column("SELECT from_span FROM flow") == 0);
  CHECK_FALSE(column("SELECT id FROM track"));
  CHECK_FALSE(column("SELECT max(id) AS span_id FROM span"));
}

TEST_CASE("rows have the time of their columns, or of their span") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  SqlConsole console(folder.file("run.db"), [] {});
  const auto pieces = [&](const std::string& sql) {
    std::string text;
    for (const SqlPiece& piece : answer_to(console, sql)->pieces)
      text += fmt::format("{}+{}:{} ", piece.ts, piece.dur, piece.row);
    return text;
  };
  CHECK(pieces("SELECT 7 AS ts UNION ALL SELECT 5 UNION ALL SELECT NULL") == "5+0:1 7+0:0 ");
  CHECK(pieces("SELECT 'a' AS name, 5 AS ts, 3 AS dur UNION ALL SELECT 'b', 4, -1") ==
        "4+0:1 5+3:0 ");
  const auto spans = answer_to(console, "SELECT id, ts, dur FROM span ORDER BY ts DESC LIMIT 3");
  REQUIRE(spans->pieces.size() == 3);
  const auto by_id = answer_to(console, "SELECT id FROM span ORDER BY ts DESC LIMIT 3");
  REQUIRE(by_id->pieces.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(by_id->pieces[i].ts == spans->pieces[i].ts);
    CHECK(by_id->pieces[i].dur == spans->pieces[i].dur);
    CHECK(by_id->pieces[i].row == spans->pieces[i].row);
  }
  CHECK(pieces("SELECT count(*) FROM span") == "");
  CHECK(pieces("SELECT 'late' AS ts") == "");
}

TEST_CASE("the console lists tables and views with their columns") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  SqlConsole console(folder.file("run.db"), [] {});
  REQUIRE(comes_true([&] { return console.tables() != nullptr; }));
  const std::vector<SqlTable> tables = *console.tables();
  const auto step = std::ranges::find(tables, "step", &SqlTable::name);
  REQUIRE(step != tables.end());
  CHECK(step->columns.starts_with("id, ts, dur, loss"));
  CHECK_FALSE(step->is_view);
  const auto phases = std::ranges::find(tables, "step_phase", &SqlTable::name);
  REQUIRE(phases != tables.end());
  CHECK(phases->is_view);
  CHECK(step < phases);
}

TEST_CASE("a question without end can be stopped") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  SqlConsole console(folder.file("run.db"), [] {});
  const std::uint64_t number = console.ask(kEndless);
  REQUIRE(comes_true([&] { return console.is_working(); }));
  console.stop();
  REQUIRE(comes_true([&] { return console.answer() != nullptr; }));
  CHECK(console.answer()->number == number);
  CHECK(console.answer()->problem == "Stopped.");
  CHECK_FALSE(console.is_working());
  CHECK(answer_to(console, "SELECT count(*) FROM step")->rows[0][0] == "3");
}

TEST_CASE("a question takes the place of one without end") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  SqlConsole console(folder.file("run.db"), [] {});
  console.ask(kEndless);
  REQUIRE(comes_true([&] { return console.is_working(); }));
  CHECK(answer_to(console, "SELECT count(*) FROM step")->rows[0][0] == "3");
}

TEST_CASE("a question whose time is up says so") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  SqlConsole console(folder.file("run.db"), [] {}, std::chrono::seconds(0));
  CHECK(answer_to(console, kEndless)->problem ==
        "Stopped after 0 seconds, the longest that a question may take here.");
}

TEST_CASE("a console can be closed while a question is worked on") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  {
    SqlConsole console(folder.file("run.db"), [] {});
    console.ask(kEndless);
    REQUIRE(comes_true([&] { return console.is_working(); }));
  }
  SUCCEED("it did not wait");
}

}  // namespace sluice::gui
