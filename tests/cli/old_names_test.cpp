#include "cli/old_names.h"

#include <catch2/catch.hpp>

using namespace sluice::cli;
using Words = std::vector<std::string>;

TEST_CASE("predict is simulate --fit, and each of its settings a --set") {
  CHECK(in_new_words({"predict", "run.db"}) == Words{"simulate", "--fit", "--like", "run.db"});
  CHECK(
      in_new_words({"predict", "--json", "run.db", "buffers=2", "--color", "never", "wire=fp32"}) ==
      Words{"simulate", "--fit", "--json", "--like", "run.db", "--set", "buffers=2", "--color",
            "never", "--set", "wire=fp32"});
  CHECK(in_new_words({"predict"}) == Words{"simulate", "--fit"});
}

TEST_CASE("plan is tune --placement, and the run of --from its argument") {
  CHECK(in_new_words({"plan", "run.toml", "--set", "devices=2"}) ==
        Words{"tune", "--placement", "run.toml", "--set", "devices=2"});
  CHECK(in_new_words({"plan", "--from", "run.db"}) == Words{"tune", "--placement", "run.db"});
  CHECK(in_new_words({"plan", "--from=run.db", "--json"}) ==
        Words{"tune", "--placement", "run.db", "--json"});
}

TEST_CASE("words before the command's name stay, and other commands keep their words") {
  CHECK(in_new_words({"--color", "always", "plan"}) ==
        Words{"--color", "always", "tune", "--placement"});
  CHECK(in_new_words({"--color=always", "plan"}) == Words{"--color=always", "tune", "--placement"});
  for (const Words& words : {Words{}, Words{"--color"}, Words{"--color", "plan"}, Words{"--help"},
                             Words{"tune", "plan"}, Words{"show", "predict"}}) {
    CHECK_FALSE(in_new_words(words));
  }
}
