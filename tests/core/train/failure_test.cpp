// Drives that fail during training: a named error, the last commit intact, and a resume that ends
// where an undisturbed run does.

#include <catch2/catch.hpp>

#include "tests/core/train/failing_run.h"

using namespace sluice;
using io::FaultPlan;

namespace {

// Counts the requests of the engine it wraps.
class CountingEngine final : public ForwardingEngine {
 public:
  CountingEngine(std::unique_ptr<io::IoEngine> inner, std::uint64_t* request_count)
      : ForwardingEngine(std::move(inner)), request_count_(request_count) {}

  std::size_t submit(std::span<const io::IoRequest> requests) override {
    const std::size_t count = ForwardingEngine::submit(requests);
    *request_count_ += count;
    return count;
  }

 private:
  std::uint64_t* request_count_;
};

WrapEngine counting(std::uint64_t& request_count) {
  return [&request_count](std::unique_ptr<io::IoEngine> inner) {
    return std::make_unique<CountingEngine>(std::move(inner), &request_count);
  };
}

WrapEngine faulty(std::uint64_t request_index, FaultPlan::Fault fault) {
  return [=](std::unique_ptr<io::IoEngine> inner) {
    FaultPlan plan;
    plan.planned.push_back({request_index, fault});
    plan.seed = request_index;
    return io::make_faulty_engine(std::move(inner), plan);
  };
}

// A run that nothing disturbs, and how many requests it makes of its engine.
struct Undisturbed {
  Trained trained;
  std::uint64_t request_count = 0;
};

Undisturbed undisturbed_run(const std::string& method) {
  const SmallRun files;
  Undisturbed run;
  auto trained = train_small(files, {"method=" + method}, session::StartFrom::new_state,
                             counting(run.request_count));
  REQUIRE(trained.ok());
  run.trained = std::move(*trained);
  return run;
}

// The first request, the last, and some between: of the initial state, of early and late steps.
std::vector<std::uint64_t> places_for_faults(std::uint64_t request_count) {
  constexpr std::uint64_t kParts = 6;
  REQUIRE(request_count > 10 * kParts);
  std::vector<std::uint64_t> places;
  for (std::uint64_t part = 0; part <= kParts; ++part) {
    places.push_back((request_count - 1) * part / kParts);
  }
  return places;
}

std::int64_t step_after_failure(const SmallRun& files) {
  auto store = state::StateStore::open(
      {files.folder.file("state"), state::Durability::every_commit, io::Caching::buffered});
  return store.ok() ? (*store)->committed().position.step : -1;
}

// What became of runs with a fault.
struct Outcomes {
  int unharmed = 0;         // a flipped bit that nobody reads
  int failed = 0;           // every other run
  int uncommitted = 0;      // failed, before their first commit
  int resumed = 0;          // failed, and ended as the undisturbed run after a resume
  int found_on_resume = 0;  // failed, and the damage was on the drive
};

void check_message(const Error& error, FaultPlan::Fault fault) {
  const auto message = error.message();
  CHECK_THAT(message, Catch::Contains(".slc") && Catch::Contains("offset"));
  if (fault == FaultPlan::Fault::no_space) {
    CHECK(error.code() == ErrorCode::no_space);
    CHECK_THAT(message, Catch::Contains("ENOSPC"));
  } else if (fault == FaultPlan::Fault::flip_bit) {
    CHECK(error.code() == ErrorCode::corrupt);
  } else {
    CHECK(error.code() == ErrorCode::io);
    CHECK_THAT(message, Catch::Contains("EIO"));
  }
}

void check_resume(const SmallRun& files, const std::vector<std::string>& settings,
                  FaultPlan::Fault fault, const Trained& undisturbed, Outcomes& outcomes) {
  const std::int64_t step = step_after_failure(files);
  const auto resumed = train_small(files, settings, session::StartFrom::last_commit);
  if (step < 0) {
    REQUIRE_FALSE(resumed.ok());
    CHECK_THAT(resumed.error().message(), Catch::Contains("leave out --resume"));
    outcomes.uncommitted += 1;
  } else if (resumed.ok()) {
    CHECK(resumed->digest == undisturbed.digest);
    const std::vector<double> rest(undisturbed.losses.begin() + step, undisturbed.losses.end());
    CHECK(resumed->losses == rest);
    outcomes.resumed += 1;
  } else {
    // A bit that was flipped on its way to the drive and committed: found, not trained on.
    INFO(resumed.error().message());
    REQUIRE(fault == FaultPlan::Fault::flip_bit);
    CHECK(resumed.error().code() == ErrorCode::corrupt);
    outcomes.found_on_resume += 1;
  }
}

void check_failure_and_resume(FaultPlan::Fault fault, std::uint64_t request_index,
                              const std::string& method, const Trained& undisturbed,
                              Outcomes& outcomes) {
  const SmallRun files;
  const std::vector<std::string> settings = {"method=" + method};
  const auto disturbed =
      train_small(files, settings, session::StartFrom::new_state, faulty(request_index, fault));
  INFO(fmt::format("{} request {}", method, request_index));
  if (disturbed.ok()) {
    REQUIRE(fault == FaultPlan::Fault::flip_bit);
    CHECK(disturbed->digest == undisturbed.digest);
    CHECK(disturbed->losses == undisturbed.losses);
    outcomes.unharmed += 1;
    return;
  }
  outcomes.failed += 1;
  check_message(disturbed.error(), fault);
  check_resume(files, settings, fault, undisturbed, outcomes);
}

Outcomes outcomes_of(FaultPlan::Fault fault, const std::string& method,
                     const Undisturbed& undisturbed) {
  Outcomes outcomes;
  for (const std::uint64_t index : places_for_faults(undisturbed.request_count)) {
    check_failure_and_resume(fault, index, method, undisturbed.trained, outcomes);
  }
  return outcomes;
}

}  // namespace

TEST_CASE(
    "EIO, a full drive or a cut transfer fails the run, and a resume ends as if nothing was") {
  for (const std::string method : {"csd", "host"}) {
    const Undisturbed undisturbed = undisturbed_run(method);
    for (const FaultPlan::Fault fault :
         {FaultPlan::Fault::eio, FaultPlan::Fault::no_space, FaultPlan::Fault::cut_transfer}) {
      INFO(method << " fault " << static_cast<int>(fault));
      const Outcomes outcomes = outcomes_of(fault, method, undisturbed);
      CHECK(outcomes.failed == 7);
      CHECK(outcomes.uncommitted > 0);
      CHECK(outcomes.resumed > 0);
      CHECK(outcomes.uncommitted + outcomes.resumed == outcomes.failed);
    }
  }
}

TEST_CASE("a flipped bit is found, or changes no number") {
  Outcomes all;
  for (const std::string method : {"csd", "host"}) {
    const Outcomes outcomes =
        outcomes_of(FaultPlan::Fault::flip_bit, method, undisturbed_run(method));
    all.failed += outcomes.failed;
    all.unharmed += outcomes.unharmed;
  }
  CHECK(all.failed > 0);
  CHECK(all.failed + all.unharmed == 14);
}

TEST_CASE("short transfers and interrupted calls change nothing") {
  const SmallRun a;
  const SmallRun b;
  const auto undisturbed = train_small(a, {});
  const auto disturbed =
      train_small(b, {}, session::StartFrom::new_state, [](std::unique_ptr<io::IoEngine> inner) {
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
  const auto second = train_small(parts, {"schedule_steps=6"}, session::StartFrom::last_commit);
  REQUIRE(one.ok());
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(second->digest == one->digest);
  CHECK(second->losses == std::vector<double>(one->losses.begin() + 2, one->losses.end()));
}

TEST_CASE("what cannot be resumed is refused with what to do") {
  const SmallRun files;
  CHECK_THAT(train_small(files, {}, session::StartFrom::last_commit).error().message(),
             Catch::Contains("no state") && Catch::Contains("--resume"));
  REQUIRE(train_small(files, {"steps=1"}).ok());
  CHECK_THAT(train_small(files, {}).error().message(),
             Catch::Contains("already holds an optimizer state"));
  CHECK_THAT(train_small(files, {"seed=5"}, session::StartFrom::last_commit).error().message(),
             Catch::Contains("seed"));
  CHECK_FALSE(train_small(files, {"devices=3"}, session::StartFrom::last_commit).ok());
  CHECK_FALSE(train_small(files, {"subgroup_elements=900"}, session::StartFrom::last_commit).ok());
}

TEST_CASE("a plan that does not fit is refused with the smallest cap that would do") {
  const SmallRun files;
  const auto refused = train_small(files, {"host_memory=1MiB"});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::memory);
  const std::string& message = refused.error().message();
  const std::size_t at = message.find("do is ");
  REQUIRE(at != std::string::npos);
  const std::string smallest = message.substr(at + 6, message.find(". ", at) - at - 6);
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
