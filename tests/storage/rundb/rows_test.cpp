// What rows declare against the tables that the database has, and what the declarations make: SQL
// text, rows that are written and read.

#include <map>
#include <set>

#include "storage/rundb/detail/row_bounds.h"
#include "storage/rundb/detail/row_io.h"
#include "storage/rundb/detail/schema.h"
#include "storage/rundb/lod.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {
namespace {

using detail::Connection;
using detail::DeclaredColumn;
using detail::DeclaredTable;
using detail::Statement;

struct ColumnOfFile {
  std::string type;
  bool is_nullable = false;
};
using ColumnsOfFile = std::map<std::string, ColumnOfFile>;

ColumnsOfFile columns_of_file(Connection& connection, std::string_view table) {
  Statement statement = require_ok(connection.prepare(
      fmt::format("SELECT name, type, \"notnull\", pk FROM pragma_table_info('{}')", table)));
  ColumnsOfFile columns;
  while (require_ok(statement.step())) {
    const bool is_nullable = statement.int64_at(2) == 0 && statement.int64_at(3) == 0;
    columns[statement.text_at(0)] = {statement.text_at(1), is_nullable};
  }
  REQUIRE_FALSE(columns.empty());
  return columns;
}

std::string word_of(SqlType type) {
  return type == SqlType::integer ? "INTEGER" : type == SqlType::real ? "REAL" : "TEXT";
}

// What tables have and rows do not: ids that SQLite gives or a query puts in, the place of a bin,
// and a column of the format that nobody fills yet.
const std::map<std::string, std::set<std::string>> kUndeclared = {{"knob", {"id"}},
                                                                  {"knob_change", {"knob_id"}},
                                                                  {"lateness", {"name_id"}},
                                                                  {"lod", {"chunk"}},
                                                                  {"span", {"parent_id"}}};

void require_same(Connection& connection, const DeclaredTable& table) {
  ColumnsOfFile left = columns_of_file(connection, table.name);
  for (const DeclaredColumn& column : table.columns) {
    INFO("column " << column.name);
    const std::size_t point = column.name.find('.');
    const std::string name(column.name.substr(point == column.name.npos ? 0 : point + 1));
    ColumnsOfFile of_another;
    if (point != column.name.npos)
      of_another = columns_of_file(connection, column.name.substr(0, point));
    ColumnsOfFile& columns = point == column.name.npos ? left : of_another;
    REQUIRE(columns.count(name) == 1);
    CHECK(columns[name].type == word_of(column.type));
    CHECK(columns[name].is_nullable == column.is_nullable);
    columns.erase(name);
  }
  std::set<std::string> undeclared;
  for (const auto& [name, column] : left) undeclared.insert(name);
  const auto known = kUndeclared.find(std::string(table.name));
  CHECK(undeclared == (known == kUndeclared.end() ? std::set<std::string>() : known->second));
}

TEST_CASE("rows declare the columns of their tables, with type and NULL") {
  const TempFolder folder;
  {
    auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
    Batch sampled;  // makes the tables of the samples
    sampled.samples.threads = {{1, 1, "thread"}};
    require_ok(writer->append(sampled));
  }
  Connection connection =
      require_ok(Connection::open(folder.file("run.db"), Connection::Mode::read));
  std::set<std::string_view> declared;
  for (const DeclaredTable& table : detail::declared_tables()) {
    INFO("table " << table.name);
    CHECK(declared.insert(table.name).second);
    require_same(connection, table);
  }
  for (const detail::SchemaEntity& entity : require_ok(detail::schema_of_sluice())) {
    INFO(entity.type << " " << entity.name);
    CHECK(declared.count(entity.name) == (entity.type == "table" ? 1 : 0));
  }
}

// A row of a query that has another value in each column; `is_none`: and NULL where it may be.
struct MadeSource {
  bool is_none = false;
  bool is_null(int /*at*/) const { return is_none; }
  std::int64_t int64_at(int at) const { return is_none ? 0 : 100 + at; }
  double double_at(int at) const {
    return is_none ? std::numeric_limits<double>::quiet_NaN() : 0.5 + at;
  }
  std::string text_at(int at) const { return is_none ? "" : fmt::format("text {}", at); }
};

template <typename Row>
Row made_row(const MadeSource& source) {
  Row row;
  int at = 0;
  std::apply([&](const auto&... column) { (column.take(row, source, at++), ...); },
             kTable<Row>.columns);
  return row;
}

template <typename Row>
bool is_same(const Row& a, const Row& b) {
  const auto same = [&](const auto& column) {
    const auto of_a = column.stored(a);
    const auto of_b = column.stored(b);
    return of_a == of_b || (of_a != of_a && of_b != of_b);  // NaN is not itself
  };
  return std::apply([&](const auto&... column) { return (same(column) && ...); },
                    kTable<Row>.columns);
}

template <typename Row>
void require_comes_back() {
  INFO("table " << kTable<Row>.name);
  Connection connection = require_ok(Connection::open(":memory:", Connection::Mode::create));
  const std::string table(kTable<Row>.name);
  const auto sql = [&table](std::string_view before, std::string_view form,
                            std::string_view after) {
    return detail::with_columns(fmt::format("{} {{{} {}}} {}", before, form, table, after));
  };
  require_ok(connection.execute(sql("CREATE TABLE " + table + " (", "names", ")")));
  Statement insert = require_ok(connection.prepare(sql("INSERT INTO", "row", "")));
  Statement select = require_ok(
      connection.prepare(sql("SELECT 'before',", "columns", "FROM " + table + " ORDER BY rowid")));
  for (const bool is_none : {false, true})
    require_ok(detail::write_row(insert, made_row<Row>({.is_none = is_none})));
  for (const bool is_none : {false, true}) {
    REQUIRE(require_ok(select.step()));
    CHECK(is_same(detail::row_at<Row>(select, 1), made_row<Row>({.is_none = is_none})));
  }
  REQUIRE_FALSE(require_ok(select.step()));
}

TEST_CASE("a row comes back as it went in, whatever it has none of") {
  require_comes_back<MetaRow>();
  require_comes_back<ClockRow>();
  require_comes_back<ClockOffsetRow>();
  require_comes_back<StatRow>();
  require_comes_back<StringRow>();
  require_comes_back<TrackRow>();
  require_comes_back<StepRow>();
  require_comes_back<SpanRow>();
  require_comes_back<CounterRow>();
  require_comes_back<SpanRunRow>();
  require_comes_back<SpanBatchRow>();
  require_comes_back<LodRow>();
  require_comes_back<LongSpanRow>();
  require_comes_back<FlowRow>();
  require_comes_back<DeviceRow>();
  require_comes_back<LinkRow>();
  require_comes_back<TrackLinkRow>();
  require_comes_back<StageRow>();
  require_comes_back<ModeRow>();
  require_comes_back<SubgroupRow>();
  require_comes_back<KnobRow>();
  require_comes_back<VerdictRow>();
}

TEST_CASE("a place in braces becomes the columns of a table") {
  using detail::with_columns;
  CHECK(with_columns("SELECT {columns counter} FROM counter") ==
        "SELECT counter.track_id, counter.ts, counter.value FROM counter");
  CHECK(with_columns("{names counter}; {marks counter}") == "track_id, ts, value; ?, ?, ?");
  CHECK(with_columns("INSERT INTO {row mode};") ==
        "INSERT INTO mode (ts, step_id, line) VALUES (?, ?, ?);");
  CHECK(with_columns("INSERT INTO {row mode but ts};") ==
        "INSERT INTO mode (step_id, line) VALUES (?, ?);");
  CHECK(with_columns("SET {updates meta}") == "SET key = excluded.key, value = excluded.value");
  CHECK_THAT(with_columns("{columns knob_change}"),
             Catch::Matchers::Contains("knob_change.step_id, knob.name, knob_change.old"));
}

TEST_CASE("a row has its bounds from its columns, and those between them") {
  using detail::is_within_bounds;
  CHECK(is_within_bounds(StepRow{.id = 3, .ts = -5, .dur = 7, .tokens = 9}));
  CHECK_FALSE(is_within_bounds(StepRow{.id = std::int64_t{1} << 31}));
  CHECK_FALSE(is_within_bounds(StepRow{.ts = kAmountMax + 1}));
  CHECK_FALSE(is_within_bounds(StepRow{.tokens = -1}));
  CHECK_FALSE(is_within_bounds(LongSpanRow{.ts = 5, .end_ts = 4}));
  CHECK_FALSE(is_within_bounds(LodRow{.level = kLodLevels}));
  CHECK_FALSE(is_within_bounds(LodRow{.bin = kAmountMax}));
  CHECK_FALSE(is_within_bounds(SpanRunRow{.first_id = 5, .last_id = 4}));
}

}  // namespace
}  // namespace sluice::rundb
