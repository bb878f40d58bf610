// Which steps of a run simulate_step() shows.

#include "core/simulate/simulation.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "core/plan/run_plan.h"
#include "profiler/record/recorder.h"
#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

// GPT-2 4.0B on ten SmartSSDs, method=host.
SimulatedStep step_with(int buffers, const std::string& density) {
  return simulated(sample_plan(
      "gpt2-4.0b", "smartssd-a5000",
      {"method=host", "devices=10", "density=" + density, fmt::format("buffers={}", buffers)}));
}

std::vector<double> lengths(const SimulatedStep& step) {
  std::vector<double> seconds;
  for (const StepTimes& times : step.steps) {
    seconds.push_back(static_cast<double>(times.end_ns - times.start_ns) / 1e9);
  }
  return seconds;
}

std::int64_t written_bytes(const SimulatedStep& step, const std::string& link) {
  std::int64_t size_bytes = 0;
  for (const LinkUse& use : step.links) {
    if (use.name != link) continue;
    for (const auto& phase : use.size_bytes) size_bytes += phase[1];
  }
  return size_bytes;
}

}  // namespace

TEST_CASE("of a run whose steps become alike one is shown") {
  const SimulatedStep step = step_with(1, "0.01");
  REQUIRE(step.steps.size() == 1);
  CHECK(step.total_seconds == Approx(lengths(step).front()));
}

// Long steps and short ones follow each other: neither is what a step of this run takes.
TEST_CASE("of a run whose steps never become alike the mean is shown") {
  const SimulatedStep step = step_with(4, "0.01");
  const std::vector<double> seconds = lengths(step);
  REQUIRE(seconds.size() == 6);
  const auto [least, most] = std::ranges::minmax(seconds);
  CHECK(most > 1.1 * least);
  CHECK(step.total_seconds == Approx(std::reduce(seconds.begin(), seconds.end()) / 6));
  CHECK(step.seconds[0] + step.seconds[1] + step.seconds[2] == Approx(step.total_seconds));
  for (std::size_t i = 1; i < step.steps.size(); ++i) {
    CHECK(step.steps[i].start_ns == step.steps[i - 1].end_ns);
  }
  // Each step writes the same, whatever it takes.
  const auto once = static_cast<double>(written_bytes(step_with(1, "0.01"), "csd0.drive"));
  CHECK(static_cast<double>(written_bytes(step, "csd0.drive")) == Approx(once).epsilon(0.02));
  for (const LinkUse& link : step.links) {
    for (std::size_t phase = 0; phase < kPhaseCount; ++phase) {
      CHECK(link.busy_seconds[phase] <= step.seconds[phase]);
    }
  }
}

// A step of nbuffer leaves something under way, which has to end before the error is told.
TEST_CASE("a recording that cannot begin is an error of every pipeline") {
  for (const std::string pipeline : {"serial", "handover", "nbuffer"}) {
    const plan::RunPlan plan =
        sample_plan("gpt2-124m", "smartssd-a5000", {"devices=2", "pipeline=" + pipeline});
    INFO(pipeline);
    record::Recorder recorder;
    SimulationRecording recording;
    recording.recorder = &recorder;
    recording.begin = [] { return Status(make_error(ErrorCode::io, "there is no room")); };
    recording.write_down = [] { return ok_status(); };
    const auto never_begun = simulate_step(plan, &recording);
    REQUIRE(!never_begun.ok());
    CHECK(never_begun.error().message() == "there is no room");
  }
}

TEST_CASE("a recording that cannot go on is an error, too") {
  const plan::RunPlan plan = sample_plan("gpt3-175b", "smartssd-a5000", {"devices=10"});
  record::Recorder recorder;
  SimulationRecording recording;
  recording.recorder = &recorder;
  recording.begin = [] { return ok_status(); };
  recording.write_down = [] { return Status(make_error(ErrorCode::io, "the drive is full")); };
  const auto stopped = simulate_step(plan, &recording);
  REQUIRE(!stopped.ok());
  CHECK(stopped.error().message() == "the drive is full");
}
