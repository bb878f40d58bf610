#include "gui/data/export_run.h"

#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {

TEST_CASE("what is exported lies beside the run, under a name that was free") {
  const TempFolder folder;
  const std::string database = folder.file("run.db");
  CHECK(export_path(database, ExportForm::report) == folder.file("run.html"));
  CHECK(export_path(database, ExportForm::trace) == folder.file("run.trace.json.gz"));
  CHECK(export_path(database, ExportForm::trace, {11, 20}) ==
        folder.file("run-steps-11-20.trace.json.gz"));
  CHECK(export_path(database, ExportForm::tables) == folder.file("run-tables"));
  std::ofstream(folder.file("run.html")) << "somebody's";
  CHECK(export_path(database, ExportForm::report) == folder.file("run-2.html"));
}

TEST_CASE("the program is asked for the form, and a refusal is its own sentence") {
  const TempFolder folder;
  const std::string program = folder.file("sluice");
  std::ofstream(program) << "#!/bin/sh\necho '1 % of it' >&2\necho \"error: $@\" >&2\nexit 2\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string database = folder.file("run.db");
  CHECK(export_run(program, {database, database}, ExportForm::trace).problem ==
        "error: export --format chrome " + database + " -o " + folder.file("run.trace.json.gz"));
  CHECK(export_run(program, {database, database}, ExportForm::tables, {11, 20}).problem ==
        "error: export --format csv --steps 11..20 " + database + " -o " +
            folder.file("run-steps-11-20-tables"));
  CHECK(export_run(program, {database, database}, ExportForm::report).problem ==
        "error: report " + database + " -o " + folder.file("run.html"));
  CHECK_FALSE(
      export_run(folder.file("none"), {database, database}, ExportForm::report).problem.empty());
  std::ofstream(program) << "#!/bin/sh\nexit 0\n";
  const Exported exported = export_run(program, {database, database}, ExportForm::tables);
  CHECK(exported.problem.empty());
  CHECK(exported.path == folder.file("run-tables"));
}

TEST_CASE("what is exported of a merged record lies in the run's folder") {
  const TempFolder folder;
  const std::string program = folder.file("sluice");
  std::ofstream(program) << "#!/bin/sh\necho \"error: $@\" >&2\nexit 2\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  CHECK(export_run(program, {"/cache/run.db", folder.file("out/run.db")}, ExportForm::report)
            .problem == "error: report /cache/run.db -o " + folder.file("out/run.html"));
}

}  // namespace sluice::gui
