// After the first step, whose end makes the reserve of frames, the step loop takes no memory of
// ours: every operator new of the process is counted while later steps run (the model here is
// arithmetic, so none is anybody else's).

#include <array>
#include <catch2/catch.hpp>

#include "profiler/record/recorder.h"
#include "tests/allocation_count.h"
#include "tests/core/train/small_run.h"

using namespace sluice;

namespace {

// Notes the count at the end of each step, without taking memory itself.
struct Counting final : session::RunObserver {
  void on_step(const session::StepReport& report) override {
    counts[static_cast<std::size_t>(report.step)] = allocation_count();
  }
  std::array<std::int64_t, 64> counts{};
};

void check_steps(const std::vector<std::string>& settings) {
  const SmallRun files;
  auto all = settings;
  all.push_back("steps=12");
  const auto config = files.config(all);
  REQUIRE(config.ok());
  const model::ModelFactory factory = arithmetic_factory();
  record::Recorder recorder;
  train::TrainingRun::Request request;
  request.config = &*config;
  request.factory = &factory;
  request.recorder = &recorder;
  auto run = train::TrainingRun::open(request);
  REQUIRE(run.ok());
  REQUIRE((*run)->prepare(session::StartFrom::new_state).ok());
  Counting counting;
  REQUIRE(train::train(**run, {{&counting}, {}}).ok());
  for (std::size_t step = 3; step <= 12; ++step) {
    INFO("step " << step);
    CHECK(counting.counts[step] - counting.counts[step - 1] == 0);
  }
}

}  // namespace

TEST_CASE("no step after the first ones takes memory: csd") { check_steps({"method=csd"}); }
TEST_CASE("no step after the first ones takes memory: compressed") {
  check_steps({"method=csd", "density=0.05", "error_feedback=true"});
}
TEST_CASE("no step after the first ones takes memory: host, posix I/O") {
  check_steps({"method=host", "io_engine=posix", "buffers=3"});
}
TEST_CASE("no step after the first ones takes memory: a commit every third step") {
  check_steps({"method=csd", "commit_every=3"});
}
TEST_CASE("no step after the first ones takes memory: clipped by subgroup") {
  check_steps({"method=csd", "overlap=local"});
  check_steps({"method=host", "overlap=local", "commit_every=3", "density=0.05"});
}
TEST_CASE("no step after the first ones takes memory: parameters on the drives") {
  check_steps({"method=csd", "parameter_tier=storage"});
  check_steps({"method=host", "parameter_tier=storage", "parameter_buffer=12288"});
}
TEST_CASE("no step after the first ones takes memory: state that stays in memory") {
  check_steps({"method=csd", "commit_every=3", "state_cache=60KB"});
  check_steps({"method=host", "state_cache=auto"});
}

namespace {

struct StopsAtOnce final : session::RunRequests {
  bool wants_stop() override { return true; }
};

}  // namespace

TEST_CASE("how many steps are asked for does not decide what memory a run takes") {
  const SmallRun files;
  const auto config = files.config({"steps=1000000000", "schedule_steps=100"});
  REQUIRE(config.ok());
  const model::ModelFactory factory = arithmetic_factory();
  train::TrainingRun::Request request;
  request.config = &*config;
  request.factory = &factory;
  auto run = train::TrainingRun::open(request);
  REQUIRE(run.ok());
  REQUIRE((*run)->prepare(session::StartFrom::new_state).ok());
  StopsAtOnce stops;
  const auto report = train::train(**run, {{}, {&stops}});
  REQUIRE(report.ok());
  CHECK(report->losses.size() == 1);
  CHECK(report->losses.capacity() * sizeof(double) <= 1 << 20);
}
