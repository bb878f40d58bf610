#include <catch2/catch.hpp>
#include <sstream>

#include "cli/exit_code.h"
#include "tests/cli/command_line_fixture.h"

using namespace sluice;
using namespace sluice::cli;

TEST_CASE("each command says what it does, with an example, and each option what it is") {
  int exit_code = kDone;
  const std::unique_ptr<CLI::App> app = make_command_line(exit_code);
  const std::vector<CLI::App*> commands = app->get_subcommands(nullptr);
  REQUIRE(commands.size() >= 15);
  for (const CLI::App* command : commands) {
    INFO(command->get_name());
    CHECK_FALSE(command->get_description().empty());
    CHECK_THAT(command->get_footer(),
               Catch::Contains("Example") && Catch::Contains("sluice " + command->get_name()));
    for (const CLI::Option* option : command->get_options()) {
      INFO(option->get_name());
      CHECK_FALSE(option->get_description().empty());
    }
    std::istringstream help(command->help());
    for (std::string line; std::getline(help, line);) {
      INFO(line);
      CHECK((line.size() <= 100 || line.starts_with("  sluice ")));
    }
  }
}

TEST_CASE("help is no error, a wrong word is") {
  CHECK(run({"--help"}) == kDone);
  CHECK(run({"--version"}) == kDone);
  CHECK(run({"show", "--help"}) == kDone);
  CHECK(run({}) == kUsage);
  CHECK(run({"shwo"}) == kUsage);
  CHECK(run({"show"}) == kUsage);
  CHECK(run({"show", "--no-such-option", "x"}) == kUsage);
  CHECK(run({"show", "--color", "green", "x.db"}) == kUsage);
}
