#include "core/control/messages.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace sluice::control {
namespace {

std::string refusal_of(std::string_view line) {
  std::int64_t id = 0;
  const auto request = parse_request(line, id);
  REQUIRE_FALSE(request.ok());
  return request.error().message();
}

TEST_CASE("a set keeps its values as --set would take them") {
  std::int64_t id = 0;
  const auto request =
      parse_request(R"({"id":7,"do":"set","knobs":{"buffers":4,"density":0.05,"pipeline":"serial",)"
                    R"("prefetch":false},)"
                    R"("who":"gui","revert_if":"step_time>+5%","watch_steps":9})",
                    id);
  REQUIRE(request.ok());
  CHECK(id == 7);
  CHECK(request->kind == RequestKind::set);
  CHECK(request->set.settings ==
        std::vector<std::string>{"buffers=4", "density=0.05", "pipeline=serial", "prefetch=false"});
  CHECK(request->set.who == "gui");
  CHECK(request->set.revert_if == "step_time>+5%");
  CHECK(request->set.watch_steps == 9);
}

TEST_CASE("a wrong request is refused with what is wrong") {
  CHECK(refusal_of("buffers=4") == "this is no JSON");
  CHECK(refusal_of("[1]") == "a request is a JSON object");
  CHECK(refusal_of(R"({"do":"sett"})").find("did you mean 'set'?") != std::string::npos);
  CHECK(refusal_of(R"({"do":"status","knob":1})").find("did you mean 'knobs'?") !=
        std::string::npos);
  CHECK(refusal_of(R"({"id":"x","do":"status"})") == "'id' must be an integer");
  CHECK(refusal_of(R"({"id":18446744073709551615,"do":"status"})") ==
        "'id' is 18446744073709551615; it must be at most 9223372036854775807");
  CHECK(refusal_of(R"({"id":9223372036854775808,"do":"status"})").starts_with("'id' is"));
  CHECK(refusal_of(R"({"id":-9223372036854775809,"do":"status"})") == "'id' must be an integer");
  CHECK(refusal_of(R"({"do":"set","knobs":{"buffers":4},"watch_steps":18446744073709551615})") ==
        "'watch_steps' must be 1 to 10000");
  CHECK(refusal_of(R"({"do":"set"})").starts_with("set needs 'knobs'"));
  CHECK(refusal_of(R"({"do":"set","knobs":{}})").starts_with("set needs 'knobs'"));
  CHECK(refusal_of(R"({"do":"set","knobs":{"buffers":null}})").find("not null") !=
        std::string::npos);
  CHECK(refusal_of(R"({"do":"set","knobs":{"buffers":[4]}})").find("not array") !=
        std::string::npos);
  CHECK(refusal_of(R"({"do":"set","knobs":{"density":NaN}})") == "this is no JSON");
  CHECK(refusal_of(R"({"do":"set","knobs":{"density":1e999}})") == "this is no JSON");
  CHECK(refusal_of(R"({"do":"set","knobs":{"buffers":4},"watch_steps":0})") ==
        "'watch_steps' must be 1 to 10000");
  CHECK(refusal_of(R"({"do":5})") == "'do' must be a text");
}

TEST_CASE("the largest and the smallest id are read as they are") {
  for (const std::int64_t largest : {INT64_MAX, INT64_MIN}) {
    std::int64_t id = 0;
    CHECK(parse_request(fmt::format("{{\"id\":{},\"do\":\"status\"}}", largest), id).ok());
    CHECK(id == largest);
  }
}

TEST_CASE("what one side writes the other reads") {
  Request request;
  request.id = 3;
  request.kind = RequestKind::set;
  request.set.settings = {"buffers=4", "device_map=3,1"};
  request.set.who = "tune";
  std::int64_t id = 0;
  const auto read = parse_request(request_line(request), id);
  REQUIRE(read.ok());
  CHECK(read->set.settings == request.set.settings);
  CHECK(read->set.who == "tune");

  const Knob knob{"buffers", "integer", 1.0, 64.0, {}, "1 to 64", "subgroups", "3", "Help.", "12"};
  const Knob open{"bounce", "bytes", 8.0, {}, {}, "at least 8", "bytes", "32", "Help.", "64"};
  const auto knobs = parse_message(knobs_line(4, {knob, open}));
  REQUIRE(knobs.ok());
  CHECK(knobs->answer_to == 4);
  REQUIRE(knobs->knobs.size() == 2);
  CHECK(knobs->knobs[0].max == 64);
  CHECK(knobs->knobs[0].value == "12");
  CHECK(knobs->knobs[1].min == 8);
  CHECK_FALSE(knobs->knobs[1].max);

  ChangeEvent event{5, ChangeState::reverted, 12, 999, {"buffers=4"}, "user", "slower"};
  const auto change = parse_message(change_event_line(event));
  REQUIRE(change.ok());
  REQUIRE(change->change_event);
  CHECK(change->change_event->state == ChangeState::reverted);
  CHECK(change->change_event->settings == event.settings);
  CHECK(change->change_event->message == "slower");
}

TEST_CASE("a loss that is no number travels as null") {
  RunStatus status;
  status.step = 3;
  status.loss = NAN;
  const std::string line = step_event_line(status);
  CHECK(line.find("\"loss\":null") != std::string::npos);
  const auto message = parse_message(line);
  REQUIRE(message.ok());
  REQUIRE(message->status);
  CHECK(std::isnan(message->status->loss));
}

TEST_CASE("an answer of another kind of program is an error, not an end of ours") {
  CHECK_FALSE(parse_message("HTTP/1.1 400 Bad Request").ok());
  CHECK_FALSE(parse_message(R"({"event":5})").ok());
  CHECK_FALSE(parse_message(R"({"id":1,"knobs":[{"words":"x","key":1}]})").ok());
}

}  // namespace
}  // namespace sluice::control
