// The reasons to doubt a run's figures, and that a sound run has none.

#include "profiler/analyze/doubts.h"

#include <catch2/catch.hpp>

#include "profiler/analyze/answers.h"

namespace sluice::analyze {
namespace {

constexpr TimeNs kMillisecond = 1'000'000;

RunAnalysis sound() {
  RunAnalysis analysis;
  analysis.dur = 100 * kMillisecond;
  analysis.answers.push_back({"lost records", Outcome::nothing_found, "38 383 operations"});
  return analysis;
}

std::vector<std::string> labels_of(const RunAnalysis& analysis) {
  std::vector<std::string> labels;
  for (const Doubt& doubt : doubts_of(analysis)) labels.push_back(doubt.label);
  return labels;
}

}  // namespace

TEST_CASE("a sound run is not doubted, and neither is one that nobody has looked at") {
  CHECK(doubts_of(sound()).empty());
  CHECK(doubts_of(RunAnalysis()).empty());
  CHECK(doubt_marks({}).empty());
}

TEST_CASE("lost records are a doubt, and so is that nobody can know of them") {
  RunAnalysis analysis = sound();
  analysis.answers.front() = {"lost records", Outcome::answer, "3 of 9 steps have no rows"};
  const std::vector<Doubt> lost = doubts_of(analysis);
  REQUIRE(lost.size() == 1);
  CHECK(lost.front().mark == "records LOST");
  CHECK(lost.front().sentence == losses_sentence(analysis.answers.front()));
  analysis.answers.front().outcome = Outcome::could_not_look;
  CHECK(doubts_of(analysis).front().mark == "losses NOT KNOWN");
}

TEST_CASE("late operations are a doubt with the share that was late") {
  RunAnalysis analysis = sound();
  analysis.lateness.is_emulated = true;
  analysis.lateness.all = {
      .operations = 1000, .late = 700, .modelled_ns = kMillisecond, .late_ns = kMillisecond};
  REQUIRE(labels_of(analysis) == std::vector<std::string>{"LATE"});
  CHECK(doubts_of(analysis).front().mark == "70 % of operations LATE");
}

TEST_CASE("clocks are a doubt from a hundredth of a step on, and all marks stand in one line") {
  RunAnalysis analysis = sound();
  analysis.ranks.emplace();
  analysis.ranks->bound_ns = kMillisecond - 1;
  CHECK(doubts_of(analysis).empty());
  analysis.ranks->bound_ns = 3 * kMillisecond;
  analysis.answers.front().outcome = Outcome::could_not_look;
  CHECK(labels_of(analysis) == std::vector<std::string>{"LOST", "CLOCKS"});
  CHECK(doubt_marks(doubts_of(analysis)) == "losses NOT KNOWN \u00b7 clocks known within 3 ms");
  CHECK(doubts_of(analysis).back().sentence ==
        "The ranks' clocks are known within 3 ms, 3 % of a step: which rank waits for another "
        "is not better known than that.");
}

}  // namespace sluice::analyze
