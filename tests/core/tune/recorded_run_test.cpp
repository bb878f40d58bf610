// What is read of a recorded run: its settings, its machine, and its steady steps.

#include "core/tune/recorded_run.h"

#include <catch2/catch.hpp>

#include "base/setting_text.h"
#include "tests/core/tune/made_recording.h"

namespace sluice::tune {
namespace {

RecordedRun opened_run(const MadeRecording& recording) {
  auto run = open_recorded_run({recording.path(), "", ""});
  INFO((run.ok() ? "" : run.error().message()));
  REQUIRE(run.ok());
  return std::move(*run);
}

std::string refusal(const MadeRecording& recording, const RecordedRunFiles& others = {}) {
  const auto run = open_recorded_run({recording.path(), others.model, others.platform});
  REQUIRE(!run.ok());
  CHECK(run.error().code() == ErrorCode::config);
  CHECK_THAT(run.error().message(),
             Catch::StartsWith(others.model.empty() ? recording.path() : others.model));
  return run.error().message();
}

TEST_CASE("a run's steady steps come back as they were recorded, without the first two") {
  const MadeRecording recording({.settings = {"devices=2"}, .step_count = 6});
  const RecordedRun run = opened_run(recording);
  CHECK(run.name == "gpt2-124m");
  CHECK(run.mode == "a mode");
  CHECK(run.step_count == 6);
  CHECK(run.config.offload.devices == 2);
  CHECK(run.model.shape.name == recording.plan().shape.name);
  CHECK(run.caveats.empty());
  REQUIRE(run.steps.steps.size() == 4);
  const RecordedSteps& once = recording.step().times;
  REQUIRE(run.steps.operations.size() == 4 * once.operations.size());
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(run.steps.steps[i].start_ns == static_cast<TimeNs>(i) * recording.step_dur_ns());
  }
  std::multiset<std::tuple<int, TimeNs, TimeNs, std::int64_t, int>> wanted;
  std::multiset<std::tuple<int, TimeNs, TimeNs, std::int64_t, int>> found;
  const auto fill = [](const RecordedSteps& steps, TimeNs begin_ns, auto& into) {
    for (const OperationTimes& operation : steps.operations) {
      if (operation.end_ns > begin_ns + steps.steps.front().end_ns - steps.steps.front().start_ns) {
        continue;
      }
      const bool is_transfer =
          stages::stage_info(operation.stage).kind == stages::StageKind::transfer;
      into.emplace(static_cast<int>(operation.stage), operation.start_ns - begin_ns,
                   operation.end_ns - begin_ns, operation.size_bytes,
                   is_transfer ? static_cast<int>(operation.direction) : 0);
    }
  };
  fill(once, once.steps.front().start_ns, wanted);
  fill(run.steps, 0, found);
  CHECK(found == wanted);
}

TEST_CASE("an emulated run's times are those of the platform, whatever its time_scale") {
  const RecordedRun plain = opened_run(MadeRecording({}));
  const RecordedRun slow =
      opened_run(MadeRecording({.settings = {"clock=emulated", "time_scale=4"}}));
  CHECK(plain.time_scale == 1);
  CHECK(slow.time_scale == 4);
  REQUIRE(slow.steps.steps.size() == plain.steps.steps.size());
  for (std::size_t i = 0; i < plain.steps.steps.size(); ++i) {
    CHECK(std::abs(slow.steps.steps[i].end_ns - plain.steps.steps[i].end_ns) <= 1);
  }
  CHECK(slow.steps.kernel_order == KernelOrder::in_turn);
}

TEST_CASE("kernels of a real run shared their processor") {
  const RecordedRun run = opened_run(MadeRecording({.clock = "real"}));
  CHECK(run.steps.kernel_order == KernelOrder::at_once);
  CHECK(!run.is_simulated);
}

TEST_CASE("after a change of a knob the steps before it do not count, nor the two that follow") {
  const MadeRecording recording(
      {.settings = {"buffers=3"},
       .step_count = 9,
       .knob_changes = {{.ts = 1, .step_id = 3, .knob = "buffers", .new_value = "5"}}});
  const RecordedRun run = opened_run(recording);
  CHECK(run.config.offload.buffers == 5);
  CHECK(run.steps.steps.size() == 4);  // 5 to 8
}

TEST_CASE("steps of a density warm-up and skipped steps do not count") {
  const MadeRecording recording(
      {.settings = {"density=0.1", "density_warmup_steps=2"}, .step_count = 8, .skipped = {5}});
  CHECK(opened_run(recording).steps.steps.size() == 3);  // 4, 6, 7
}

TEST_CASE("of a resumed run the steps since it was resumed count") {
  const MadeRecording recording({.step_count = 9, .resumed_before = {5}});
  const RecordedRun run = opened_run(recording);
  CHECK(run.step_count == 9);
  CHECK(run.steps.steps.size() == 2);  // 7, 8
}

TEST_CASE("of very many steady steps the last count") {
  const RecordedRun run = opened_run(MadeRecording({.step_count = 60}));
  CHECK(run.steps.steps.size() == 50);
}

TEST_CASE("the one step of a simulated run is steady, and its clock is no setting") {
  const RecordedRun run = opened_run(MadeRecording({.clock = "simulated", .step_count = 1}));
  CHECK(run.is_simulated);
  CHECK(run.steps.steps.size() == 1);
  CHECK(std::ranges::count(run.settings, "clock", [](const auto& s) { return key_of(s); }) == 0);
}

TEST_CASE("a run that cannot be used is refused with what to do") {
  CHECK_THAT(refusal(MadeRecording({.step_count = 0})), Catch::Contains("no step has ended in it"));
  CHECK_THAT(refusal(MadeRecording({.step_count = 3})),
             Catch::Contains("of the 3 steps since the run began or went on, 1 is steady"));
  CHECK_THAT(refusal(MadeRecording({.has_operations = false})),
             Catch::Contains("record with record=all"));
  CHECK_THAT(refusal(MadeRecording({.has_texts = false})),
             Catch::Contains("name the file that the run used with --model"));
}

TEST_CASE("a model named for a run must have as many parameters as the run") {
  const MadeRecording recording({.has_texts = false});
  CHECK_THAT(refusal(recording, {"", sample_file("models/tiny"), sample_file("platforms/laptop")}),
             Catch::Contains("parameters, and that of"));
  const auto run = open_recorded_run(
      {recording.path(), sample_file("models/gpt2-124m"), sample_file("platforms/laptop")});
  CHECK(run.ok());
}

TEST_CASE("a recording that is not whole says so") {
  const MadeRecording recording({.stats = {{.name = "records_dropped",
                                            .severity = rundb::Severity::loss,
                                            .value = 7,
                                            .description = "made"}}});
  CHECK(opened_run(recording).caveats ==
        std::vector<std::string>{"The recording is not whole (records_dropped: 7)."});
}

TEST_CASE("settings go over those of the run, and a wrong one is named with its option") {
  const RecordedRun run = opened_run(MadeRecording({.settings = {"buffers=3"}}));
  const auto config = recorded_config(run, {"buffers=6"});
  REQUIRE(config.ok());
  CHECK(config->offload.buffers == 6);
  const auto wrong = recorded_config(run, {"bufers=6"}, "--try");
  REQUIRE(!wrong.ok());
  CHECK_THAT(wrong.error().message(), Catch::StartsWith("--try bufers=6:"));
}

TEST_CASE("a run database is known by its name or by its first bytes") {
  const MadeRecording recording({});
  CHECK(is_database_path("no/such/run.db"));
  const std::string renamed = recording.path() + ".kept";
  std::filesystem::copy_file(recording.path(), renamed);
  CHECK(is_database_path(renamed));
  CHECK(!is_database_path(sample_file("models/tiny")));
}

TEST_CASE("what is no run database is refused as its reader refuses it") {
  const auto missing = open_recorded_run({"/no/such/run.db", "", ""});
  REQUIRE(!missing.ok());
  CHECK(missing.error().code() == ErrorCode::not_found);
  const auto foreign = open_recorded_run({sample_file("models/tiny"), "", ""});
  REQUIRE(!foreign.ok());
  CHECK(foreign.error().code() == ErrorCode::corrupt);
}

}  // namespace
}  // namespace sluice::tune
