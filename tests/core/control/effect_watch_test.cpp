#include "core/control/effect_watch.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace sluice::control {
namespace {

RunStatus step_of(double seconds, double loss = 2) {
  RunStatus status;
  status.step_seconds = seconds;
  status.loss = loss;
  return status;
}

// Five steps of `before`, a change, the step in which it takes effect, then steps of `after`.
std::optional<WatchResult> watch(const std::string& rule_text, double before, double after) {
  EffectWatch watch;
  for (int i = 0; i < 5; ++i) watch.on_step(step_of(before));
  watch.on_change();
  const auto rule = parse_revert_rule(rule_text);
  REQUIRE(rule.ok());
  watch.begin(1, *rule, 3, {"buffers=2"});
  watch.on_step(step_of(100 * before));  // not counted
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(watch.take_result());
    watch.on_step(step_of(after));
  }
  return watch.take_result();
}

TEST_CASE("of two changes in force from the same step neither is said to have had the effect") {
  EffectWatch watch;
  for (int i = 0; i < 5; ++i) watch.on_step(step_of(2));
  const auto rule = parse_revert_rule("step_time>+5%");
  REQUIRE(rule.ok());
  watch.on_change();
  watch.begin(1, *rule, 3, {"buffers=2"});
  CHECK(watch.on_change() == 1);
  watch.begin(2, *rule, 3, {"prefetch=true"});
  const auto result = watch.take_result();
  REQUIRE(result);
  CHECK(result->change == 2);
  CHECK_FALSE(result->harmed);
  CHECK(result->message == "another change came in force with it, so its own effect is not known");
}

TEST_CASE("a change that makes steps longer than the rule allows has harmed") {
  const auto result = watch("step_time>+5%", 2.0, 2.2);
  REQUIRE(result);
  CHECK(result->harmed);
  CHECK(result->undo == std::vector<std::string>{"buffers=2"});
  CHECK(result->message == "step_time 2 s -> 2.2 s (+10.0 %, limit +5 %)");
  CHECK_FALSE(watch("step_time>+5%", 2.0, 2.09)->harmed);
  CHECK_FALSE(watch("step_time>+5%", 2.0, 1.0)->harmed);
  CHECK(watch("step_time>0%", 2.0, 2.01)->harmed);
}

TEST_CASE("a figure that is no number any more is harm") {
  EffectWatch watch;
  watch.on_step(step_of(1));
  watch.on_change();
  watch.begin(1, *parse_revert_rule("loss>+5%"), 1, {});
  watch.on_step(step_of(1));
  watch.on_step(step_of(1, NAN));
  CHECK(watch.take_result()->harmed);
}

TEST_CASE("another change ends a watch, and is compared with what came since") {
  EffectWatch watch;
  for (int i = 0; i < 5; ++i) watch.on_step(step_of(1));
  CHECK_FALSE(watch.on_change());
  watch.begin(1, *parse_revert_rule("step_time>+5%"), 3, {});
  watch.on_step(step_of(2));
  CHECK(watch.on_change() == 1);
  watch.begin(2, *parse_revert_rule("step_time>+5%"), 1, {});
  watch.on_step(step_of(2));
  watch.on_step(step_of(2));
  CHECK_FALSE(watch.take_result()->harmed);
}

TEST_CASE("a change before the first step is kept") {
  EffectWatch watch;
  watch.on_change();
  watch.begin(1, *parse_revert_rule("step_time>+5%"), 3, {});
  const auto result = watch.take_result();
  REQUIRE(result);
  CHECK_FALSE(result->harmed);
}

TEST_CASE("a rule that is none is refused with how one looks") {
  for (const char* text : {"", "step_time", "step_time>5", ">+5%", "step_time>-5%", "step_time>x%",
                           "step_time>nan%", "step_time>inf%", "step_time>5%%"}) {
    const auto rule = parse_revert_rule(text);
    REQUIRE_FALSE(rule.ok());
    CHECK(rule.error().message().find("step_time>+5%") != std::string::npos);
  }
  CHECK(parse_revert_rule("steptime>+5%").error().message().find("did you mean 'step_time'?") !=
        std::string::npos);
}

}  // namespace
}  // namespace sluice::control
