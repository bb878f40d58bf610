#include "profiler/report/csv_export.h"

#include "storage/rundb/query.h"
#include "tests/profiler/report/made_run.h"

namespace sluice::report {

TEST_CASE("fields are quoted as RFC 4180 has it, NULL and the empty text differ") {
  using rundb::Cell;
  CHECK(csv_field(Cell()) == "");
  CHECK(csv_field(Cell(std::string())) == "\"\"");
  CHECK(csv_field(Cell(std::string("plain text"))) == "plain text");
  CHECK(csv_field(Cell(std::string("a,b"))) == "\"a,b\"");
  CHECK(csv_field(Cell(std::string("say \"hi\""))) == "\"say \"\"hi\"\"\"");
  CHECK(csv_field(Cell(std::string("two\nlines"))) == "\"two\nlines\"");
  CHECK(csv_field(Cell(std::int64_t{-9'007'199'254'740'993})) == "-9007199254740993");
  CHECK(csv_field(Cell(0.1)) == "0.1");
}

TEST_CASE("no text is a formula of a spreadsheet, and a number stays one") {
  using rundb::Cell;
  for (const std::string text :
       {"=1+1", "+cmd|calc", "-1+1", "@SUM(A1)", "\tx", "-", "+-1", "-inf", "'=1+1", "-1e999"}) {
    CHECK(csv_field(Cell(text)) == "'" + text);
  }
  CHECK(csv_field(Cell(std::string("\rx"))) == "\"'\rx\"");
  CHECK(csv_field(Cell(std::string("=HYPERLINK(\"http://x\",\"y\")"))) ==
        "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\"");
  for (const std::string text : {"-0.5", "+3", "-1e-3", "1-2", "a=b", "host \u00b7 serial"}) {
    CHECK(csv_field(Cell(text)) == text);
  }
  CHECK(csv_field(Cell(-0.5)) == "-0.5");
}

TEST_CASE("each table is a file; a folder that holds files is refused") {
  const rundb::TempFolder folder;
  write_made_run(folder.file("run.db"), {.name = "a,b", .loss = kNone});
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  require_ok(export_csv(*reader, folder.file("csv"), IfExists::refuse, {}, {}));
  std::size_t table_count = 0;
  for (const rundb::TableInfo& table : require_ok(rundb::Query(*reader).tables())) {
    table_count += table.is_view ? 0 : 1;
    CHECK(std::filesystem::exists(folder.file("csv/" + table.name + ".csv")) == !table.is_view);
  }
  CHECK(table_count > 5);
  CHECK(text_of_file(folder.file("csv/step.csv"))
            .starts_with("id,ts,dur,loss,grad_norm,loss_scale,lr,tokens,skipped\r\n"
                         "0,0,100000000,,1,1,0.001,64,0\r\n"));
  CHECK(text_of_file(folder.file("csv/meta.csv")).find("name,\"a,b\"\r\n") != std::string::npos);
  const Status again = export_csv(*reader, folder.file("csv"), IfExists::refuse, {}, {});
  REQUIRE(!again.ok());
  CHECK(again.error().message().find("--force") != std::string::npos);
  require_ok(export_csv(*reader, folder.file("csv"), IfExists::replace, {}, {}));
}

}  // namespace sluice::report
