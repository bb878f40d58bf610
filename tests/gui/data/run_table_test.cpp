#include <fstream>

#include "gui/data/run_table_feed.h"
#include "gui/data/run_table_order.h"
#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

std::string order_of(const RunTable& table, const RowOrder& order) {
  std::string names;
  for (const std::size_t row : shown_rows(table, order)) names += table.rows[row].name + " ";
  return names;
}

int column_of(const RunTable& table, const std::string& key) {
  const auto found = std::ranges::find(table.columns, key, &runs::Column::key);
  return found == table.columns.end() ? -1 : static_cast<int>(found - table.columns.begin());
}

}  // namespace

TEST_CASE("runs of a folder are rows that are sorted and filtered, a broken file among them") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.file("out/a"));
  std::filesystem::create_directories(folder.file("out/b"));
  write_made_run(folder.file("out/a/run.db"), {.step_count = 4});
  write_made_run(folder.file("out/b/run.db"), {.step_count = 9});
  std::ofstream(folder.file("out/broken.db")) << "\x1b[31m";
  const RunTable table = read_run_table(folder.file("out"), {folder.file("gone.db")});
  REQUIRE(table.problem.empty());
  REQUIRE(table.rows.size() == 3);
  const int steps = column_of(table, "step_count");
  REQUIRE(steps >= 0);
  CHECK(order_of(table, {.filter = "", .column = steps}) == "a b broken.db ");
  CHECK(order_of(table, {.filter = "", .column = steps, .is_descending = true}) ==
        "b a broken.db ");
  CHECK(order_of(table, {.filter = "BROKEN"}) == "broken.db ");
  CHECK(order_of(table, {.filter = "unreadable out"}) == "broken.db ");
  CHECK(order_of(table, {.filter = "none of them"}).empty());
  const auto broken = std::ranges::find(table.rows, "broken.db", &RunRow::name);
  REQUIRE(broken != table.rows.end());
  CHECK(broken->is_amiss);
  CHECK_FALSE(broken->has_steps);
  CHECK_FALSE(broken->remarks.empty());
}

TEST_CASE("a folder without a run says so") {
  const TempFolder folder;
  CHECK_FALSE(read_run_table(folder.file("nothing"), {}).problem.empty());
}

TEST_CASE("curves of runs are read, and of one that cannot be why not") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 4});
  const std::vector<OverlaidRun> runs =
      read_overlaid({folder.file("run.db"), folder.file("gone.db")});
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].curves.steps.size() == 4);
  CHECK(runs[0].problem.empty());
  CHECK(runs[1].curves.path == folder.file("gone.db"));
  CHECK_FALSE(runs[1].problem.empty());
}

}  // namespace sluice::gui
