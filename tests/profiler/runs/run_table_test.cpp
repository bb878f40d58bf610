#include "profiler/runs/run_table.h"

#include "profiler/runs/table_text.h"
#include "tests/profiler/runs/made_runs.h"

namespace sluice::runs {
namespace {

RunFigures made(const std::string& path, double step_s,
                std::map<std::string, std::string> settings) {
  RunFigures run;
  run.path = path;
  run.state = RunState::finished;
  run.steady.median_s = step_s;
  run.settings = std::move(settings);
  return run;
}

std::vector<RunFigures> three() {
  return {made("out/b/run.db", 2, {{"buffers", "11"}, {"method", "csd"}, {"batch", "8"}}),
          made("out/a/run.db", 1.5, {{"buffers", "3"}, {"method", "host"}, {"batch", "8"}}),
          made("out/c/run.db", kNoFigure, {{"buffers", "6"}, {"method", "csd"}, {"batch", "8"}})};
}

std::string order_of(const std::vector<RunFigures>& runs) {
  std::string order;
  for (const std::string& name : short_names(runs)) order += name;
  return order;
}

std::string sorted_by(const std::string& key) {
  std::vector<RunFigures> runs = three();
  require_ok(sort_runs(runs, key));
  return order_of(runs);
}

std::string kept_by(const std::vector<std::string>& conditions) {
  std::vector<RunFigures> runs = three();
  require_ok(keep_runs(runs, conditions));
  std::string paths;
  for (const RunFigures& run : runs) paths += run.path.substr(4, 1);
  return paths;
}

}  // namespace

TEST_CASE("settings that are the same in all runs are no columns") {
  std::vector<RunFigures> runs = three();
  std::vector<std::string> keys;
  for (const Column& column : differing_settings(runs)) keys.push_back(column.key);
  CHECK(keys == std::vector<std::string>{"buffers", "method"});
  SECTION("a run without a setting has another value than one with it") {
    runs[1].settings.erase("batch");
    CHECK(differing_settings(runs).size() == 3);
  }
  SECTION("a run that could not be read is no difference") {
    runs.push_back(made("out/d/run.db", kNoFigure, {}));
    CHECK(differing_settings(runs).size() == 2);
  }
  SECTION("one run differs from none") {
    runs.resize(1);
    CHECK(differing_settings(runs).empty());
  }
}

TEST_CASE("runs are sorted by a figure or a setting, those without it last") {
  CHECK(sorted_by("step_time") == "abc");
  CHECK(sorted_by("-step_time") == "bac");
  CHECK(sorted_by("path") == "abc");
  CHECK(sorted_by("buffers") == "acb");  // numbers: 3, 6, 11
  CHECK(sorted_by("-buffers") == "bca");
}

TEST_CASE("conditions choose runs by figures with units and by settings") {
  CHECK(kept_by({}) == "bac");
  CHECK(kept_by({"method=csd"}) == "bc");
  CHECK(kept_by({"method!=csd"}) == "a");
  CHECK(kept_by({"buffers>=6"}) == "bc");
  CHECK(kept_by({"buffers=3.0"}) == "a");
  CHECK(kept_by({"step_time<1600 ms"}) == "a");
  CHECK(kept_by({"step_time<=2"}) == "ba");
  CHECK(kept_by({"path~/a/"}) == "a");
  CHECK(kept_by({"method=csd", "buffers<10"}) == "c");
  CHECK(kept_by({"step_time="}) == "c");  // those without the figure
  CHECK(kept_by({"step_time!="}) == "ba");
  CHECK(kept_by({"step_time!=2"}) == "ac");
  CHECK(kept_by({"step_time<9"}) == "ba");
}

TEST_CASE("a key that no run has is refused, and the nearest is named") {
  std::vector<RunFigures> runs = three();
  const Status sorted = sort_runs(runs, "bufers");
  REQUIRE_FALSE(sorted.ok());
  CHECK(sorted.error().message().find("did you mean 'buffers'?") != std::string::npos);
  const auto refused = [&runs](const std::string& condition) {
    const Status kept = keep_runs(runs, std::vector{condition});
    return kept.ok() ? "" : kept.error().message();
  };
  CHECK(refused("step_tim<2").find("step_time") != std::string::npos);
  CHECK(refused("method").find("is no condition") != std::string::npos);
  CHECK(refused("step_time<").find("is no condition") != std::string::npos);
  CHECK(refused("=csd").find("is no condition") != std::string::npos);
  CHECK_FALSE(refused("step_time<fast").empty());
  CHECK(runs.size() == 3);
}

TEST_CASE(
    "shown are figures that some run has and that tell something, then settings, then words") {
  std::vector<RunFigures> runs = three();
  const auto keys = [&runs] {
    std::string text;
    for (const Column& column : shown_columns(runs)) text += column.key + " ";
    return text;
  };
  CHECK(keys() == "path state step_count step_time buffers method ");
  runs[0].name = runs[1].name = runs[2].name = "tiny";
  runs[0].marks = {"late"};
  runs[1].rank_count = 4;
  CHECK(keys() == "path state step_count step_time rank_count buffers method marks ");
  runs[1].name = "gpt2";
  CHECK(keys().starts_with("path name state "));
}

TEST_CASE("a cell is written in its unit, and a run by what tells it from others") {
  const std::vector<RunFigures> runs = three();
  const auto text = [&runs](std::size_t run, const std::string& key) {
    const Column column = require_ok(column_named(all_columns(runs), key));
    return text_of(column, cell_of(runs[run], column));
  };
  CHECK(text(0, "step_time") == "2 s");
  CHECK(text(2, "step_time") == "-");
  CHECK(text(0, "drive_read") == "-");
  CHECK(text(0, "buffers") == "11");
  CHECK(short_names(runs) == std::vector<std::string>{"b", "a", "c"});
  const std::vector<RunFigures> one = {made("out/tiny/run.db", 1, {})};
  CHECK(short_names(one) == std::vector<std::string>{"tiny"});
  const std::vector<RunFigures> mixed = {made("out/tiny/run.db", 1, {}),
                                         made("out/tiny-2/run.db", 1, {}),
                                         made("out/sub/x.db", 1, {})};
  CHECK(short_names(mixed) == std::vector<std::string>{"tiny", "tiny-2", "sub/x.db"});
}

}  // namespace sluice::runs
