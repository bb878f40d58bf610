#include "gui/data/sql_console.h"

#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

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

  CHECK(answer_to(console, "SELEC 1")->problem.find("SELEC") != std::string::npos);
  CHECK_FALSE(answer_to(console, "DELETE FROM step")->problem.empty());
  CHECK(answer_to(console, "SELECT count(*) FROM step")->rows[0][0] == "3");
}

TEST_CASE("a console can be closed while a question is worked on") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  {
    SqlConsole console(folder.file("run.db"), [] {});
    console.ask(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) "
        "SELECT count(*) FROM n");
    REQUIRE(comes_true([&] { return console.is_working(); }));
  }
  SUCCEED("it did not wait");
}

}  // namespace sluice::gui
