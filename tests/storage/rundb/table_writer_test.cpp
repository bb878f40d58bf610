#include "storage/rundb/table_writer.h"

#include <array>

#include "storage/rundb/query.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {

TEST_CASE("tables of any schema hold what was appended, however many rows") {
  const TempFolder folder;
  const std::string path = folder.file("other.sqlite");
  auto writer = require_ok(TableWriter::create(path, "CREATE TABLE t (a, b, c, d)"));
  const std::size_t rows = require_ok(writer->prepare_rows("t", "a, b, c, d"));
  for (std::int64_t i = 0; i < 120'000; ++i) {
    const std::array<Cell, 4> cells = {Cell(i), Cell(0.5), Cell(std::string("it's")), Cell()};
    require_ok(writer->append(rows, cells));
  }
  require_ok(writer->close());
  const auto again = TableWriter::create(path, "");
  REQUIRE(!again.ok());
  CHECK(again.error().code() == ErrorCode::config);
  CHECK(!Reader::open(path).ok());  // it is no run database, and does not pass for one
}

TEST_CASE("rows are read one by one, as the types that they have") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  require_ok(writer->append(whole_step(*writer, 0, 3)));
  require_ok(writer->close());
  const auto reader = require_ok(Reader::open(folder.file("run.db")));
  std::size_t count = 0;
  require_ok(Query(*reader).each_row("SELECT id, 0.25, 'text', NULL FROM span",
                                     [&count](std::span<const Cell> row) {
                                       count += 1;
                                       CHECK(std::holds_alternative<std::int64_t>(row[0]));
                                       CHECK(std::get<double>(row[1]) == 0.25);
                                       CHECK(std::get<std::string>(row[2]) == "text");
                                       CHECK(std::holds_alternative<std::monostate>(row[3]));
                                       return ok_status();
                                     }));
  CHECK(count == 3);
  const Status stopped = Query(*reader).each_row("SELECT id FROM span", [](std::span<const Cell>) {
    return Status(make_error(ErrorCode::cancelled, "enough"));
  });
  REQUIRE(!stopped.ok());
  CHECK(stopped.error().message() == "enough");
}

TEST_CASE("a stranger's question is one SELECT, and anything else is refused unrun") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  require_ok(writer->append(whole_step(*writer, 0, 3)));
  require_ok(writer->close());
  const auto reader = require_ok(Reader::open(folder.file("run.db")));
  std::vector<std::string> columns;
  std::size_t rows = 0;
  const auto ask = [&](const std::string& sql) {
    return Query(*reader).each_row_of_question(
        sql,
        [&](std::span<const std::string> named) {
          columns.assign(named.begin(), named.end());
          return ok_status();
        },
        [&](std::span<const Cell>) {
          rows += 1;
          return ok_status();
        });
  };
  require_ok(ask("SELECT id, dur AS long FROM span; -- and no more"));
  CHECK(columns == std::vector<std::string>{"id", "long"});
  CHECK(rows == 3);
  for (const char* sql :
       {"DELETE FROM span", "ATTACH ':memory:' AS x", "PRAGMA user_version", "BEGIN",
        "SELECT id FROM span; SELECT 1", "SELECT load_extension('x')", "", "VACUUM",
        "SELECT * FROM pragma_database_list", "CREATE TEMP TABLE x (y)"}) {
    INFO(sql);
    CHECK(!ask(sql).ok());
  }
  CHECK(rows == 3);
}

TEST_CASE("a text that is asked again gives each answer whole, also from within its own") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  require_ok(writer->append(whole_step(*writer, 0, 3)));
  require_ok(writer->close());
  const auto reader = require_ok(Reader::open(folder.file("run.db")));
  const auto ids_behind = [&reader](std::int64_t id, const auto& use_id) {
    return Query(*reader).each_row_with(
        "SELECT id FROM span WHERE id > ?1 ORDER BY id", {id},
        [&use_id](std::span<const Cell> row) { return use_id(std::get<std::int64_t>(row[0])); });
  };
  for (int round = 0; round < 2; ++round) {
    std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
    require_ok(ids_behind(0, [&](std::int64_t outer) {
      return ids_behind(outer, [&](std::int64_t inner) {
        pairs.emplace_back(outer, inner);
        return ok_status();
      });
    }));
    CHECK(pairs == std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 2}, {1, 3}, {2, 3}});
    // One that ended early begins anew.
    CHECK(!ids_behind(0, [](std::int64_t) {
             return Status(make_error(ErrorCode::cancelled, "enough"));
           }).ok());
  }
  CHECK(!Query(*reader)
             .each_row_with("SELECT nothing FROM span", {},
                            [](std::span<const Cell>) { return ok_status(); })
             .ok());
}

}  // namespace sluice::rundb
