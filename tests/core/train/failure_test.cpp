// Drives that fail during training: a named error, the last commit intact, and a resume that ends
// where an undisturbed run does.

#include <catch2/catch.hpp>

#include "storage/io/faulty_engine.h"
#include "tests/core/train/small_run.h"

using namespace sluice;
using io::FaultPlan;

namespace {

WrapEngine faulty(std::uint64_t request_index, FaultPlan::Fault fault) {
  return [=](std::unique_ptr<io::IoEngine> inner) {
    FaultPlan plan;
    plan.planned.push_back({request_index, fault});
    plan.seed = request_index;
    return io::make_faulty_engine(std::move(inner), plan);
  };
}

std::int64_t committed_step(const SmallRun& files) {
  auto store = state::StateStore::open(
      {files.folder.file("state"), state::Durability::every_commit, io::Caching::buffered});
  return store.ok() ? (*store)->committed().position.step : -1;
}

void check_failure_and_resume(FaultPlan::Fault fault, std::uint64_t request_index,
                              const std::string& method, const Trained& undisturbed) {
  const SmallRun files;
  const std::vector<std::string> settings = {"method=" + method};
  const auto failed =
      train_small(files, settings, train::StartFrom::new_state, faulty(request_index, fault));
  INFO(fmt::format("{} request {}", method, request_index));
  if (failed.ok()) return;  // a flipped bit in what nobody reads again
  CHECK_THAT(failed.error().message(), Catch::Contains(files.folder.path()));
  const std::int64_t step = committed_step(files);
  if (step < 0) return;  // before the first commit there is nothing to go on from
  const auto resumed = train_small(files, settings, train::StartFrom::last_commit);
  INFO((resumed.ok() ? std::string() : resumed.error().message()));
  if (!resumed.ok()) {
    // A bit that was flipped on its way to the drive and committed: found, not trained on.
    REQUIRE(fault == FaultPlan::Fault::flip_bit);
    CHECK(resumed.error().code() == ErrorCode::corrupt);
    return;
  }
  CHECK(resumed->digest == undisturbed.digest);
  const std::vector<double> rest(undisturbed.losses.begin() + step, undisturbed.losses.end());
  CHECK(resumed->losses == rest);
}

}  // namespace

TEST_CASE("EIO, a full drive, a cut transfer or a flipped bit never becomes a wrong number") {
  const SmallRun a;
  const auto undisturbed = train_small(a, {"method=csd"});
  REQUIRE(undisturbed.ok());
  for (const FaultPlan::Fault fault :
       {FaultPlan::Fault::eio, FaultPlan::Fault::no_space, FaultPlan::Fault::cut_transfer,
        FaultPlan::Fault::flip_bit}) {
    for (const std::uint64_t index : {3u, 40u, 77u, 131u, 202u}) {
      check_failure_and_resume(fault, index, index % 2 == 0 ? "csd" : "host", *undisturbed);
    }
  }
}

TEST_CASE("short transfers and interrupted calls change nothing") {
  const SmallRun a;
  const SmallRun b;
  const auto undisturbed = train_small(a, {});
  const auto disturbed =
      train_small(b, {}, train::StartFrom::new_state, [](std::unique_ptr<io::IoEngine> inner) {
        FaultPlan plan;
        for (std::uint64_t i = 0; i < 400; i += 3) {
          plan.planned.push_back(
              {i, static_cast<FaultPlan::Fault>(
                      i % 2 == 0 ? static_cast<int>(FaultPlan::Fault::short_transfer)
                                 : static_cast<int>(FaultPlan::Fault::interrupted))});
        }
        return io::make_faulty_engine(std::move(inner), plan);
      });
  REQUIRE(undisturbed.ok());
  REQUIRE(disturbed.ok());
  CHECK(disturbed->digest == undisturbed->digest);
}

TEST_CASE("a run in two parts ends where a run in one does") {
  const SmallRun whole;
  const SmallRun parts;
  const auto one = train_small(whole, {"schedule_steps=6"});
  const auto first = train_small(parts, {"steps=2", "schedule_steps=6"});
  const auto second = train_small(parts, {"schedule_steps=6"}, train::StartFrom::last_commit);
  REQUIRE(one.ok());
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(second->digest == one->digest);
  CHECK(second->losses == std::vector<double>(one->losses.begin() + 2, one->losses.end()));
}

TEST_CASE("what cannot be resumed is refused with what to do") {
  const SmallRun files;
  CHECK_THAT(train_small(files, {}, train::StartFrom::last_commit).error().message(),
             Catch::Contains("no state") && Catch::Contains("--resume"));
  REQUIRE(train_small(files, {"steps=1"}).ok());
  CHECK_THAT(train_small(files, {}).error().message(),
             Catch::Contains("already holds an optimizer state"));
  CHECK_THAT(train_small(files, {"seed=5"}, train::StartFrom::last_commit).error().message(),
             Catch::Contains("seed"));
  CHECK_FALSE(train_small(files, {"devices=3"}, train::StartFrom::last_commit).ok());
  CHECK_FALSE(train_small(files, {"subgroup_elements=900"}, train::StartFrom::last_commit).ok());
}

TEST_CASE("a plan that does not fit is refused with the smallest cap that would do") {
  const SmallRun files;
  const auto refused = train_small(files, {"host_memory=1MiB"});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::memory);
  const std::string& message = refused.error().message();
  const std::size_t at = message.find("do is ");
  REQUIRE(at != std::string::npos);
  const std::string smallest = message.substr(at + 6, message.find(" B", at) - at - 6);
  CHECK_FALSE(state::StateStore::exists(files.folder.file("state")));
  CHECK(train_small(files, {"host_memory=" + smallest}).ok());
}

TEST_CASE("buffer sets that do not fit the device's memory are refused") {
  const SmallRun files;
  const auto refused = train_small(files, {"device_memory=64KiB", "buffers=4"});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::memory);
  CHECK_THAT(refused.error().message(), Catch::Contains("smallest device_memory"));
}
