// Files that are no run or no longer one, runs that die: a reason in the window, and no harm.

#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "gui/data/verdict.h"
#include "gui/views/session.h"
#include "profiler/analyze/answers.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"
#include "tests/profiler/report/made_run.h"
#include "tests/storage/rundb/changed_rows.h"

namespace sluice::gui {
namespace {

// In the header of every SQLite file.
constexpr std::streamoff kVersionAt = 60;
constexpr std::streamoff kApplicationIdAt = 68;

std::string written(const std::string& name, const std::string& content) {
  std::ofstream(test_path(name), std::ios::binary) << content;
  return test_path(name);
}

std::string patched_run(const std::string& name, std::streamoff at, const std::string& bytes) {
  report::write_made_run(test_path(name), {});
  std::fstream file(test_path(name), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return test_path(name);
}

std::string cut_run() {
  report::write_made_run(test_path("cut.db"), {.step_count = 40});
  fs::resize_file(test_path("cut.db"), fs::file_size(test_path("cut.db")) / 2);
  return test_path("cut.db");
}

// Small, since each of many pictures is drawn without a graphics card.
AppOptions small_window() {
  AppOptions options = options_for("");
  options.window.width = 1200;
  options.window.height = 800;
  return options;
}

void open_by_hand(const Drive& d, const std::string& path) {
  d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
  d.test->Yield(3);
  d.test->ItemInputValue("**/##path", path.c_str());
  IM_CHECK(d.comes_true(
      [&] { return d.session().pieces.feed && d.session().pieces.feed->path() == path; }));
}

struct Damage {
  std::string name;
  std::string sql;
  std::string said;
};

std::vector<Damage> damages() {
  return {
      {"whole", "", "Lost records: nothing found"},
      {"no counts", "DELETE FROM stat", "Lost records: could not look (table stat has no rows)."},
      {"rows gone", "DELETE FROM span WHERE id % 2 = 0", "operations have no rows"},
      {"no names", "DELETE FROM string", "Links: could not look"},
      {"no flows", "DELETE FROM flow", "What set operations off: could not look"}};
}

}  // namespace

// The words are those that the Overview draws (gui/views/looked.h); the pictures show them.
TEST_CASE("the window says what its analyses could not look at") {
  if (!can_run()) return;
  for (const Damage& damage : damages()) {
    const std::string path = test_path(damage.name + ".db");
    report::write_made_run(path, {.step_count = 12});
    if (!damage.sql.empty()) rundb::change_rows(path, damage.sql);
    AppOptions options = small_window();
    options.databases = {path};
    const std::string problem = drive(options, [&](const Drive& d) {
      const RunPieces& pieces = d.session().pieces;
      IM_CHECK(d.comes_true(
          [&] { return pieces.verdict != nullptr && !pieces.verdict->analysis.answers.empty(); },
          std::chrono::seconds(30)));
      std::string text;
      for (const analyze::Answer& answer : pieces.verdict->analysis.answers)
        text += answer.words() + "\n";
      if (text.find(damage.said) == std::string::npos)
        IM_ERRORF("'%s' is not in: %s", damage.said.c_str(), text.c_str());
      d.picture_with_all("damaged, " + damage.name);
    });
    INFO(damage.name);
    CHECK(problem == "");
  }
}

TEST_CASE("a live run is followed, and its sudden death is no harm") {
  if (!can_run()) return;
  const std::string database = test_path("live") + "/run.db";
  ChildProcess training(train_command("live", 400));
  const std::string problem = drive(options_for(database), [&](const Drive& d) {
    Session& session = d.session();
    IM_CHECK(d.comes_true(
        [&] { return session.pieces.has_facts() && session.pieces.steps().size() >= 2; }));
    IM_CHECK(session.pieces.run->is_live);
    IM_CHECK(session.timeline.view.follows());
    const TimeNs before = session.timeline.view.range().end;
    const std::size_t step_count = session.pieces.steps().size();
    IM_CHECK(d.comes_true([&] { return session.pieces.steps().size() >= step_count + 2; }));
    IM_CHECK_GT(session.timeline.view.range().end, before);
    d.picture_with_all("live");
    d.test->ItemClick("//Timeline/Follow");
    IM_CHECK(!session.timeline.view.follows());
    ::kill(training.id(), SIGKILL);
    IM_CHECK(d.comes_true([&] { return !session.pieces.run->is_live; }));
    IM_CHECK(session.pieces.steps().size() >= step_count + 2);
    IM_CHECK(session.pieces.run->problem.empty());
    fs::remove(database);
    IM_CHECK(d.comes_true([&] { return !session.pieces.run->problem.empty(); }));
    d.picture_with_all("file gone");
    d.test->ItemClick("//Problem/Close the run");
    IM_CHECK(session.pieces.feed == nullptr);
  });
  CHECK(problem == "");
}

TEST_CASE("a file that is no run is an error panel with a reason") {
  if (!can_run()) return;
  const std::vector<std::pair<std::string, std::string>> files = {
      {text_file(), "not a database"},
      {written("empty.db", ""), "is empty"},
      {cut_run(), "cut.db"},
      {patched_run("foreign.db", kApplicationIdAt, "\x0f\x05\x51\x12"), "not a run database"},
      {patched_run("newer.db", kVersionAt, std::string("\0\0\x03\xe7", 4)), "999"},
      {test_path("nothing here.db"), "there is no such run database"},
      {fs::path(text_file()).parent_path().string(), ""}};
  const std::string problem = drive(small_window(), [&](const Drive& d) {
    for (const auto& [path, words] : files) {
      open_by_hand(d, path);
      IM_CHECK(d.comes_true(
          [&] { return d.session().pieces.run && !d.session().pieces.run->problem.empty(); }));
      const std::string said = d.session().pieces.run->problem;
      if (said.find(words) == std::string::npos)
        IM_ERRORF("%s: '%s' is not in: %s", path.c_str(), words.c_str(), said.c_str());
      d.picture_with_all("no run, " + fs::path(path).filename().string());
    }
    d.test->ItemClick("//Problem/Close the run");
    IM_CHECK(d.session().pieces.feed == nullptr);
  });
  CHECK(problem == "");
}

TEST_CASE("runs without steps, with one, or without a loss are shown as far as they go") {
  if (!can_run()) return;
  const std::vector<report::MadeRun> runs = {
      {.name = "no steps", .step_count = 0},
      {.name = "one step", .step_count = 1},
      {.name = "no operations", .has_spans = false},
      {.name = "no losses", .step_count = 12, .loss = report::kNone}};
  const std::string problem = drive(small_window(), [&](const Drive& d) {
    for (const report::MadeRun& made : runs) {
      const std::string path = test_path(made.name + ".db");
      report::write_made_run(path, made);
      open_by_hand(d, path);
      // Not for the prediction, which is a process of low priority.
      IM_CHECK(d.comes_true([&] {
        return d.session().pieces.verdict != nullptr && d.session().pieces.statistics != nullptr;
      }));
      IM_CHECK_STR_EQ(d.session().pieces.run->problem.c_str(), "");
      IM_CHECK_EQ(d.session().pieces.steps().size(), static_cast<std::size_t>(made.step_count));
      for (const std::unique_ptr<View>& view : d.shell->views()) {
        d.session().foreground.bring(view->title());
        d.test->Yield(3);
      }
      d.session().foreground.bring("Statistics");
      d.picture_with_all(made.name);
    }
  });
  CHECK(problem == "");
}

}  // namespace sluice::gui
