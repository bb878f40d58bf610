#include "profiler/report/nsys_export.h"

#include "tests/profiler/report/made_run.h"

namespace sluice::report {
namespace {

// The whole file as text: enough to see which names are in it, without a second SQLite here. The
// figures are checked by tests/e2e/report_test.py, with queries as Nsight Systems' users write
// them.
bool has(const std::string& file, const std::string& text) {
  return text_of_file(file).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("the export has the tables of Nsight Systems, and no file is left half made") {
  const rundb::TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const std::string path = folder.file("run.sqlite");
  double share = 0;
  require_ok(
      export_nsys(*reader, path, IfExists::refuse, {}, [&share](double done) { share = done; }));
  CHECK(share == 1);
  for (const char* table : {"StringIds", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL",
                            "CUPTI_ACTIVITY_KIND_MEMCPY", "META_DATA_EXPORT"}) {
    CHECK(has(path, std::string("CREATE TABLE ") + table));
  }
  CHECK(!std::filesystem::exists(unfinished_path(path)));
  const Status again = export_nsys(*reader, path, IfExists::refuse, {}, {});
  REQUIRE(!again.ok());
  CHECK(again.error().message().find("--force") != std::string::npos);
  require_ok(export_nsys(*reader, path, IfExists::replace, {}, {}));
}

}  // namespace sluice::report
