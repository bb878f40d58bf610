// The window with the databases of all ranks of a run.

#include <catch2/catch.hpp>
#include <cstdlib>

#include "gui/data/opening.h"
#include "gui/data/span_lookup.h"
#include "gui/data/verdict.h"
#include "gui/views/session.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"
#include "tests/gui/data/run_of_ranks.h"

namespace sluice::gui {
namespace {

// Where merged records go: below the tests' folder.
std::string cache_folder(const std::string& name) {
  ::setenv("XDG_CACHE_HOME", test_path(name).c_str(), 1);
  return test_path(name) + "/sluice/merged";
}

bool has_finding(const Drive& d, const std::string& words) {
  return std::ranges::any_of(d.session().pieces.verdict->findings, [&](const auto& finding) {
    return finding.text.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a folder of ranks is opened as one run, is read again, and leaves nothing") {
  if (!can_run()) return;
  const std::string merged = cache_folder("ranks cache");
  const std::string output = test_path("three ranks");
  write_run_of_ranks(output);
  const std::string problem = drive(options_for(output), [&](const Drive& d) {
    const RunPieces& pieces = d.session().pieces;
    IM_CHECK(d.comes_true([&] { return pieces.has_facts() && pieces.verdict != nullptr; }));
    IM_CHECK(pieces.ranks != nullptr);
    IM_CHECK_STR_EQ(pieces.place().c_str(), output.c_str());
    IM_CHECK(has_finding(d, "The others wait for rank 2"));
    IM_CHECK(pieces.verdict->analysis.ranks.has_value());
    IM_CHECK_EQ(pieces.verdict->analysis.ranks->ranks.size(), std::size_t{3});
    const auto has_group = [&](const std::string& group) {
      return std::ranges::any_of(pieces.facts().tracks,
                                 [&](const TrackFacts& track) { return track.group == group; });
    };
    IM_CHECK(has_group("rank 0: compute") && has_group("rank 2: compute"));
    IM_CHECK(d.shell->window_title().find("three ranks") != std::string::npos);
    d.picture_with_all("ranks of a folder");
    const std::size_t step_count = pieces.steps().size();
    d.session().timeline.choose(1);
    write_run_of_ranks(output, {.step_count = 15});
    d.test->KeyPress(ImGuiKey_F5);
    IM_CHECK(d.comes_true([&] { return pieces.steps().size() == step_count + 3; }));
    IM_CHECK_STR_EQ(pieces.run->problem.c_str(), "");
    IM_CHECK(d.comes_true([&] { return pieces.chosen == nullptr; }));
    // Ranks that are gone leave the picture as it was.
    fs::remove_all(output + "/rank-1");
    d.test->KeyPress(ImGuiKey_F5);
    IM_CHECK(d.has_item("//Opening/Close"));
    IM_CHECK_EQ(pieces.steps().size(), step_count + 3);
    d.picture_with_all("ranks that are gone");
    d.test->ItemClick("//Opening/Close");
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_W);
    IM_CHECK(d.comes_true([&] { return fs::is_empty(merged); }));
  });
  CHECK(problem == "");
  CHECK(fs::is_empty(merged));
}

TEST_CASE("databases of two runs are not opened as one, and why is said") {
  if (!can_run()) return;
  const std::string merged = cache_folder("refused cache");
  const std::vector<std::string> ranks = write_run_of_ranks(test_path("one run"));
  AppOptions options = options_for("");
  options.databases = {ranks[0], ranks[1],
                       write_run_of_ranks(test_path("other run"), {.run_id = "another"})[2]};
  const std::string problem = drive(options, [&](const Drive& d) {
    IM_CHECK(d.has_item("//Opening/Close"));
    IM_CHECK(d.session().pieces.feed == nullptr);
    IM_CHECK(d.settles());
    d.picture_with_all("two runs refused");
    d.test->ItemClick("//Opening/Close");
    IM_CHECK(d.session().pieces.feed == nullptr);
    // All ranks of one, dropped as files are.
    d.shell->open_runs(ranks);
    IM_CHECK(d.comes_true([&] { return d.session().pieces.has_facts(); }));
    IM_CHECK_EQ(d.session().pieces.ranks->databases.size(), std::size_t{3});
  });
  CHECK(problem == "");
  CHECK(fs::is_empty(merged));
}

}  // namespace sluice::gui
