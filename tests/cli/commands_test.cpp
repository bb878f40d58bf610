// Commands that need no model, one after the other on a run that is simulated.

#include <catch2/catch.hpp>
#include <filesystem>

#include "cli/exit_code.h"
#include "tests/cli/command_line_fixture.h"
#include "tests/test_folder.h"

using namespace sluice;
using namespace sluice::cli;
namespace fs = std::filesystem;

TEST_CASE("what is recorded is shown, compared, reported, exported and predicted") {
  const TestFolder folder;
  const std::string database = folder.file("sim.db");
  REQUIRE(run(simulated_into(database)) == kDone);
  CHECK(run({"show", database}) == kDone);
  CHECK(run({"show", database, "--json"}) == kDone);
  CHECK(run({"show", database, "--last", "1", "--color", "always"}) == kDone);
  CHECK(run({"compare", database, database}) == kDone);
  CHECK(run({"compare", database, database, "--json"}) == kDone);
  CHECK(run({"compare", database, database, "--fail-if", "step_time>+3%"}) == kDone);
  CHECK(run({"report", database, "-o", folder.file("page.html")}) == kDone);
  CHECK(fs::file_size(folder.file("page.html")) > 10'000);
  for (const std::string form : {"chrome", "csv", "nsys"}) {
    CHECK(run({"export", database, "--format", form, "-o", folder.file(form)}) == kDone);
    CHECK(fs::exists(folder.file(form)));
  }
  CHECK(run({"simulate", "--like", database, "--fit", "--set", "buffers=2", "--json"}) == kDone);
  CHECK(run({"predict", database, "buffers=2", "--json"}) == kDone);
  CHECK(run({"tune", database}) == kDone);
}

TEST_CASE("a step is simulated, swept and planned") {
  const std::vector<std::string> on = {"sample_models/models/gpt2-1.7b.toml", "--platform",
                                       "sample_models/platforms/smartssd-a5000.toml"};
  const auto with = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), on.begin(), on.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  CHECK(run(with({"simulate"}, {"--json"})) == kDone);
  CHECK(run(with({"simulate"}, {"--sweep", "devices=1..2"})) == kDone);
  const std::vector<std::string> few = {"--set", "devices=2", "--simulations", "3"};
  CHECK(run(with({"tune", "--placement"}, few)) == kDone);
  CHECK(run(with({"plan"}, few)) == kDone);
}

TEST_CASE("files that are not there are refused") {
  const TestFolder folder;
  CHECK(run({"show", folder.file("none.db")}) == kUsage);
  CHECK(run({"compare", folder.file("none.db"), folder.file("none.db")}) == kUsage);
  CHECK(run({"train", folder.file("none.toml")}) == kUsage);
  CHECK(run({"state", folder.file("none")}) == kUsage);
  CHECK(run({"set", folder.file("none.db"), "buffers=2"}) == kUsage);
  CHECK(run({"merge", folder.path(), "-o", folder.file("all.db")}) == kUsage);
  CHECK(run({"calibrate", folder.file("none"), "-o", folder.file("mine.toml")}) == kUsage);
  CHECK(run({"tune"}) == kUsage);
  CHECK(run({"plan"}) == kUsage);
  CHECK_FALSE(fs::exists(folder.file("mine.toml")));
}
