// Runs whose gradients are not finite: when they end, what is then committed, and what they advise.

#include "core/train/divergence.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/core/train/planted_model.h"
#include "tests/core/train/small_run.h"

using namespace sluice;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A run whose gradients overflow in the steps `from` to `end` of what it does.
Result<Trained> train_planted(const SmallRun& files, const std::vector<std::string>& settings,
                              std::size_t from, std::size_t end, Planted what,
                              session::StartFrom start = session::StartFrom::new_state) {
  PlantedSteps steps(64);
  for (std::size_t i = from; i < end; ++i) steps[i] = {what, 0, 0};
  return train_small(files, settings, start, {}, {}, nullptr, planted_factory(steps));
}

std::string why(const Result<Trained>& failed) {
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().code() == ErrorCode::diverged);
  return failed.error().message();
}

state::TrainingPosition committed(const SmallRun& files) {
  const auto store = state::StateStore::open_read_only({files.folder.file("state")});
  REQUIRE(store.ok());
  return (*store)->committed().position;
}

std::string digest_in(const SmallRun& files) {
  const auto store = state::StateStore::open_read_only({files.folder.file("state")});
  REQUIRE(store.ok());
  const auto digest = state::digest_state(**store, nullptr, nullptr);
  REQUIRE(digest.ok());
  return digest->digest;
}

}  // namespace

TEST_CASE("a step whose gradients are not finite is not committed, however often it is tried") {
  for (const char* way : {"pipeline=serial", "pipeline=nbuffer", "overlap=exact", "method=host"}) {
    const SmallRun whole, files;
    INFO(way);
    const auto before = train_small(whole, {way, "steps=3", "schedule_steps=6"});
    REQUIRE(before.ok());
    const std::vector<std::string> settings = {way, "steps=6", "schedule_steps=6"};
    const std::string first = why(train_planted(files, settings, 3, 64, Planted::no_loss));
    CHECK_THAT(first, Catch::Contains("the gradients of step 4 are not finite (loss nan)") &&
                          Catch::Contains("committed at step 3 are ruined"));
    for (int attempt = 0; attempt < 2; ++attempt) {
      CHECK(why(train_planted(files, settings, 0, 64, Planted::no_loss,
                              session::StartFrom::last_commit)) == first);
      CHECK(committed(files).step == 3);
      CHECK(digest_in(files) == before->digest);
    }
    CHECK_THAT(first, !Catch::Contains("go on from it with --resume"));
  }
}

TEST_CASE("behind commits that lie further back the advice is a gentler resume, which works") {
  const SmallRun whole, files;
  const std::vector<std::string> settings = {"steps=6", "schedule_steps=6", "commit_every=2"};
  const std::string said = why(train_planted(files, settings, 3, 64, Planted::no_loss));
  CHECK_THAT(said, Catch::Contains("weights of step 2, which is committed") &&
                       Catch::Contains("go on from it with --resume"));
  CHECK(committed(files).step == 2);
  const auto through = train_small(whole, settings);
  const auto rest = train_small(files, settings, session::StartFrom::last_commit);
  REQUIRE(through.ok());
  REQUIRE(rest.ok());
  CHECK(rest->digest == through->digest);
}

TEST_CASE("a finite loss with such gradients is told apart, and a resume is not advised either") {
  const SmallRun files;
  const std::string said = why(train_planted(files, {}, 2, 3, Planted::overflow));
  CHECK_THAT(said, Catch::Contains("gradients of step 3") &&
                       Catch::Contains("comes to the same gradients") &&
                       !Catch::Contains("ruined"));
}

TEST_CASE("a run that skips its steps with the loss scale at its smallest ends, by name") {
  const SmallRun files;
  const std::vector<std::string> settings = {"precision=fp16", "steps=60", "initial_loss_scale=64",
                                             "min_loss_scale=16", "max_skipped_steps=4"};
  const std::string said = why(train_planted(files, settings, 2, 64, Planted::overflow));
  CHECK_THAT(said, Catch::Contains("4 steps in a row were skipped") &&
                       Catch::Contains("smallest, 16 (min_loss_scale)") &&
                       Catch::Contains("precision=bf16"));
  // Two good steps, two that halve the scale from 64, and the four.
  CHECK(committed(files).step == 8);
  CHECK(committed(files).optimizer_step == 2);
  CHECK(committed(files).loss_scale == 16);
}

TEST_CASE("a loss that is not finite ends a run that skips before its scale has come down") {
  const SmallRun files;
  const std::vector<std::string> settings = {"precision=fp16", "steps=60",
                                             "initial_loss_scale=1024", "max_skipped_steps=4"};
  const std::string said = why(train_planted(files, settings, 2, 64, Planted::no_loss));
  CHECK_THAT(said, Catch::Contains("4 steps in a row") && Catch::Contains("at every loss scale") &&
                       Catch::Contains("are ruined"));
  CHECK(committed(files).step == 6);
}

TEST_CASE("fewer skipped steps in a row end nothing, and are counted") {
  const SmallRun files;
  const std::vector<std::string> settings = {"precision=fp16", "steps=9", "initial_loss_scale=16",
                                             "min_loss_scale=16", "max_skipped_steps=4"};
  PlantedSteps steps(64);
  for (const std::size_t i : {1, 2, 3, 5, 6, 7}) steps[i] = {Planted::overflow, 0, 0};
  const auto trained = train_small(files, settings, session::StartFrom::new_state, {}, {}, nullptr,
                                   planted_factory(steps));
  REQUIRE(trained.ok());
  CHECK(std::ranges::count(trained->steps, true, &session::StepReport::skipped) == 6);
  CHECK(committed(files).optimizer_step == 3);
}

TEST_CASE("the advice names the newest snapshot of earlier weights") {
  const SmallRun files;
  const std::string output = files.folder.path();
  CHECK(train::newest_snapshot_before(output, 9).empty());
  REQUIRE(train_small(files, {"steps=1"}).ok());
  const auto keep = [&](const char* name) {
    std::filesystem::create_directories(output + "/snapshots");
    std::filesystem::copy(output + "/state", output + "/snapshots/" + name,
                          std::filesystem::copy_options::recursive);
  };
  for (const char* name : {"step-000002", "step-000010", "step-000003", "step-x"}) keep(name);
  std::filesystem::create_directories(output + "/snapshots/step-000008");  // no state
  const std::string third = output + "/snapshots/step-000003";
  CHECK(train::newest_snapshot_before(output, 10) == third);
  CHECK(train::newest_snapshot_before(output, 3) == output + "/snapshots/step-000002");
  const train::DivergedRun run{
      .why = "w", .loss = kNan, .weights_step = 9, .committed_step = 9, .snapshot = third};
  CHECK_THAT(train::diverged(run).message(), Catch::Contains("Go back to the snapshot " + third));
}

TEST_CASE("whether a run can go on is told by its last loss, and by a validation behind it") {
  train::TrainReport report;
  CHECK(report.can_go_on());
  report.losses = {3, 2};
  CHECK(report.can_go_on());
  report.last_step = 2;
  report.validation = {.step = 2, .loss = kNan};
  CHECK_FALSE(report.can_go_on());
  CHECK(std::isnan(report.last_loss()));
  report.validation->loss = 2.5;
  CHECK(report.last_loss() == 2.5);
  report.losses.back() = kNan;  // of one text, with weights that are good for another
  CHECK(report.can_go_on());
  report.validation->step = 1;
  CHECK_FALSE(report.can_go_on());
}
