#include "cli/fail_condition.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::cli;

namespace {

analyze::Comparison of_two_runs() {
  analyze::Comparison comparison;
  comparison.figures = {{.key = "step_time", .unit = "s", .a = 1, .b = 1.05, .noise = 0.01},
                        {.key = "loss", .unit = "", .a = 2, .b = 2.1, .noise = 0.2},
                        {.key = "host_write", .unit = "B", .a = 1000, .b = 800}};
  return comparison;
}

bool trips(const std::string& text) {
  const analyze::Comparison comparison = of_two_runs();
  const Result<FailCondition> condition = parse_fail_condition(text, comparison);
  REQUIRE(condition.ok());
  return is_tripped(*condition, comparison);
}

}  // namespace

TEST_CASE("a change beyond its bound trips, one within it does not") {
  CHECK(trips("step_time>+3%"));
  CHECK(trips("step_time>3%"));
  CHECK_FALSE(trips("step_time>6%"));
  CHECK_FALSE(trips("step_time<-3%"));
  CHECK(trips("host_write<-10%"));
  CHECK_FALSE(trips("host_write<-30%"));
  // Without % it is a difference.
  CHECK(trips("step_time>0.04"));
  CHECK_FALSE(trips("step_time>0.06"));
  CHECK(trips("host_write<-199"));
}

TEST_CASE("a change within the noise trips nothing") { CHECK_FALSE(trips("loss>0.01")); }

TEST_CASE("what is no condition is refused, and a wrong figure names the nearest") {
  const auto [text, words] = GENERATE(table<std::string, std::string>({
      {"step_time", "write a figure"},
      {">3%", "write a figure"},
      {"step_time>", "write a figure"},
      {"step_time>%", "write a figure"},
      {"step_time>3x%", "write a figure"},
      {"step_time>nan", "write a figure"},
      {"step_time>inf%", "write a figure"},
      {"step_time>>3%", "write a figure"},
      {"steptime>3%", "did you mean 'step_time'?"},
      {"zzz>3%", "there are step_time, loss, host_write"},
  }));
  INFO(text);
  const Result<FailCondition> condition = parse_fail_condition(text, of_two_runs());
  REQUIRE_FALSE(condition.ok());
  CHECK(condition.error().code() == ErrorCode::config);
  CHECK_THAT(condition.error().message(), Catch::Contains(words));
}
