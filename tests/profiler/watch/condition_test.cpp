#include "profiler/watch/condition.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::watch;

TEST_CASE("a condition is a figure, a sign and a bound with its unit") {
  const Result<Condition> share = parse_condition("step_time>+20%");
  REQUIRE(share.ok());
  CHECK(share->is_percent);
  CHECK(share->bound == Approx(0.2));
  const Result<Condition> seconds = parse_condition("no_step_for>1.5 ms");
  REQUIRE(seconds.ok());
  CHECK(seconds->bound == Approx(0.0015));
  CHECK(parse_condition("step_time>2")->bound == 2);
  CHECK(parse_condition("loss=nan")->sign == '=');
}

TEST_CASE("what is no condition is refused with the nearest right one") {
  const auto said = [](const std::string& text) {
    const Result<Condition> condition = parse_condition(text);
    return condition.ok() ? "" : condition.error().message();
  };
  CHECK(said("step_tim>+20%").find("did you mean 'step_time'?") != std::string::npos);
  for (const std::string text :
       {"", "loss", ">3", "loss>", "loss>nan", "loss>1e999", "loss=3", "step_time=nan",
        "step_time>2 GB", "lost_records>5%", "lost_records<1", "no_step_for<3s", "loss>3%%"}) {
    CHECK(said(text).starts_with("--when " + text + ": "));
  }
}
