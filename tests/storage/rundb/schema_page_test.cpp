// docs/rundb_schema.md against the database: each table, view and column stands in both.

#include <fstream>
#include <map>
#include <vector>

#include "storage/rundb/query.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {
namespace {

using Columns = std::map<std::string, std::vector<std::string>>;

// "### `span`" begins a table, "| `ts` | begin |" is a column of it.
Columns columns_of_page(const std::string& path) {
  std::ifstream page(path);
  REQUIRE(page.good());
  Columns columns;
  std::string table;
  for (std::string line; std::getline(page, line);) {
    const auto between_ticks = [&](std::size_t from) {
      return line.substr(from, line.find('`', from) - from);
    };
    if (line.starts_with("## ")) table.clear();
    if (line.starts_with("### `")) columns[table = between_ticks(5)];
    if (line.starts_with("| `") && !table.empty()) columns[table].push_back(between_ticks(3));
  }
  return columns;
}

TEST_CASE("the schema page and the database name the same tables and columns") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  Batch sampled;  // makes the tables of the samples
  sampled.samples.threads = {{1, 1, "thread"}};
  require_ok(writer->append(sampled));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  Columns columns_of_database;
  for (const TableInfo& table : require_ok(Query(*reader).tables()))
    columns_of_database[table.name] = table.columns;
  REQUIRE(columns_of_database.size() == 35);

  const Columns page = columns_of_page(SLUICE_SOURCE_DIR "/docs/rundb_schema.md");
  for (const auto& [table, columns] : columns_of_database) {
    INFO("table " << table << " of the database");
    REQUIRE(page.count(table) == 1);
    REQUIRE(page.at(table) == columns);
  }
  for (const auto& [table, columns] : page) {
    INFO("table " << table << " of the page");
    REQUIRE(columns_of_database.count(table) == 1);
  }
}

}  // namespace
}  // namespace sluice::rundb
