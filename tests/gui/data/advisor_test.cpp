// Questions about a run that was simulated, so that the answers are those of simulation.

#include "gui/data/advisor.h"

#include <catch2/catch.hpp>

#include "core/tune/predicted_changes.h"
#include "gui/data/span_lookup.h"
#include "tests/core/tune/made_recording.h"
#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

std::shared_ptr<const Advice> answer_to(const Advisor& advisor, Question question,
                                        std::uint64_t number) {
  comes_true([&] {
    const auto advice = advisor.advice(question);
    return advice != nullptr && advice->number == number;
  });
  return advisor.advice(question);
}

}  // namespace

TEST_CASE("settings are predicted together as core/tune predicts them") {
  const tune::MadeRecording recording({});
  Advisor advisor(recording.path());
  CHECK(advisor.advice(Question::what_if) == nullptr);
  const std::vector<std::string> settings = {"buffers=4", "wire=native"};
  const auto advice =
      answer_to(advisor, Question::what_if, advisor.ask(Question::what_if, settings));
  REQUIRE(advice != nullptr);
  CHECK_FALSE(advisor.is_working(Question::what_if));
  CHECK(advice->problem.empty());
  CHECK(advice->settings == settings);
  REQUIRE(advice->predicted.each.size() == 1);
  const analyze::PredictedChange& change = advice->predicted.each.front();
  CHECK(change.settings == settings);
  const tune::Predictor predictor = tune::Predictor::open(recording.path()).value();
  CHECK(change.seconds == predictor.with(settings).value().seconds);
  CHECK(advice->predicted.fit_error == predictor.fit_error());
}

TEST_CASE("suggestions, a proposal and the knobs of a run come by name") {
  const tune::MadeRecording recording({.settings = {"pipeline=serial"}});
  Advisor advisor(recording.path());
  const std::uint64_t suggest = advisor.ask(Question::suggest);
  const std::uint64_t tune = advisor.ask(Question::tune, {"subgroup_elements", "pipeline"});
  const std::uint64_t knobs = advisor.ask(Question::knobs);
  const auto suggested = answer_to(advisor, Question::suggest, suggest);
  CHECK(suggested->problem.empty());
  CHECK(suggested->predicted.each.size() > 3);
  const std::vector<std::string> nbuffer = {"pipeline=nbuffer"};
  const auto found =
      std::ranges::find(suggested->predicted.each, nbuffer, &analyze::PredictedChange::settings);
  REQUIRE(found != suggested->predicted.each.end());
  CHECK(found->from == std::vector<std::string>{"pipeline=serial"});
  CHECK(found->change < 0);
  CHECK_FALSE(found->why.empty());
  const auto proposed = answer_to(advisor, Question::tune, tune);
  CHECK(proposed->problem.empty());
  for (const analyze::PredictedChange& change : proposed->predicted.each) {
    CHECK(change.change < 0);
    CHECK(change.settings.size() == change.from.size());
    for (const std::string& setting : change.settings) {
      CHECK_FALSE(setting.starts_with("subgroup_elements="));
      CHECK_FALSE(setting.starts_with("pipeline="));
    }
  }
  const auto recorded = answer_to(advisor, Question::knobs, knobs);
  const auto pipeline = std::ranges::find(recorded->knobs, "pipeline", &control::Knob::key);
  REQUIRE(pipeline != recorded->knobs.end());
  CHECK(pipeline->value == "serial");
  CHECK(pipeline->words == std::vector<std::string>{"serial", "handover", "nbuffer"});
}

TEST_CASE("what cannot be answered says why") {
  const tune::MadeRecording recording({});
  const tune::MadeRecording bare({.has_operations = false});
  const auto problem_of = [](const std::string& database, Question question,
                             std::vector<std::string> settings) {
    Advisor advisor(database);
    return answer_to(advisor, question, advisor.ask(question, std::move(settings)))->problem;
  };
  CHECK_THAT(problem_of(recording.path(), Question::what_if, {"bufers=4"}),
             Catch::Contains("did you mean 'buffers'?"));
  CHECK_THAT(problem_of(recording.path(), Question::tune, {"bufers"}),
             Catch::Contains("did you mean 'buffers'?"));
  CHECK_FALSE(problem_of(bare.path(), Question::suggest, {}).empty());
  CHECK_THAT(problem_of("/nowhere/run.db", Question::suggest, {}),
             Catch::Contains("/nowhere/run.db"));
}

TEST_CASE("memory that is refused is a problem of the question and not of the window") {
  const tune::MadeRecording recording({});
  const Advice advice =
      advice_on(recording.path(), Question::suggest, {}, []() -> bool { throw std::bad_alloc(); });
  CHECK_THAT(advice.problem, Catch::Contains("memory"));
}

TEST_CASE("a question that nobody waits for ends before its next simulated step") {
  const tune::MadeRecording recording({});
  int asked = 0;
  const auto advice = advice_on(recording.path(), Question::suggest, {}, [&] {
    asked += 1;
    return asked > 3;
  });
  CHECK_THAT(advice.problem, Catch::Contains("stopped"));
  CHECK(asked < 20);  // what is left unfitted or unsimulated is not gone through
  for (const Question question : {Question::what_if, Question::tune}) {
    CHECK_THAT(advice_on(recording.path(), question, {}, [] { return true; }).problem,
               Catch::Contains("stopped"));
  }
  Advisor closed(recording.path());
  closed.ask(Question::suggest);
}

}  // namespace sluice::gui
