// Drives that fail a call of a commit, without a crash: the last commit stays, in this process and
// for the next.

#include <catch2/catch.hpp>

#include "storage/state/detail/open_store.h"
#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;

const Geometry kFailingGeometry{
    .parameter_count = 60, .subgroup_elements = 10, .variable_count = 2, .device_count = 3};

struct FailingState {
  explicit FailingState(ScriptedDisk::Picker fails) {
    make_state(options, kFailingGeometry, 2).reset();
    store = must(detail::open_store(options, std::make_unique<ScriptedDisk>(log, fails)));
    log->calls.clear();
  }
  std::int64_t step_on_disk() {
    store.reset();
    store = must(StateStore::open(options));
    REQUIRE(digest_of(*store) ==
            expected_digest(kFailingGeometry, store->committed().position.step));
    return store->committed().position.step;
  }

  ScratchFolder scratch;
  StateStore::Options options = quick_options(scratch.path("state"));
  std::shared_ptr<CallLog> log = std::make_shared<CallLog>();
  std::unique_ptr<StateStore> store;
};

// Fails the first call of this description.
ScriptedDisk::Picker once(const std::string& wanted) {
  return [wanted, done = false](int, const std::string& call) mutable {
    return !done && call == wanted && (done = true);
  };
}

TEST_CASE("a commit makes every device durable before it writes the record") {
  FailingState state(nullptr);
  must(state.store->commit(write_step(*state.store, 3)));
  std::vector<std::string> calls = state.log->calls;
  REQUIRE(calls.size() == 5);
  std::sort(calls.begin(), calls.begin() + 3);  // the devices are synced at the same time
  CHECK(calls == std::vector<std::string>{"sync dev0/state.slc", "sync dev1/state.slc",
                                          "sync dev2/state.slc", "write commit.slc",
                                          "sync commit.slc"});
}

TEST_CASE("a record that could not be written leaves the last commit, and may be tried again") {
  const std::string failing = GENERATE("write commit.slc", "sync commit.slc");
  FailingState state(once(failing));
  const CommitRecord before = state.store->committed();
  const CommitRecord record = write_step(*state.store, 3);
  const Status failed = state.store->commit(record);
  REQUIRE(!failed.ok());
  CHECK_THAT(failed.error().message(), Catch::Contains("the one before it is current") &&
                                           Catch::Contains("scripted failure"));
  CHECK(state.store->committed() == before);
  CHECK(state.store->layout().next(SubgroupId{0}) == record.subgroups[0].slot);
  CHECK(must(StateStore::open_read_only(state.options))->committed() == before);

  SECTION("tried again") {
    must(state.store->commit(record));
    CHECK(state.step_on_disk() == 3);
  }
  SECTION("abandoned and redone") {
    state.store->layout().abandon();
    must(state.store->commit(write_step(*state.store, 4)));
    CHECK(state.step_on_disk() == 4);
  }
  SECTION("given up") { CHECK(state.step_on_disk() == 2); }
}

TEST_CASE("a device that failed to make its data durable ends committing") {
  FailingState state(once("sync dev1/state.slc"));
  const CommitRecord record = write_step(*state.store, 3);
  const Status failed = state.store->commit(record);
  REQUIRE(!failed.ok());
  CHECK_THAT(failed.error().message(),
             Catch::Contains("dev1/state.slc") && Catch::Contains("end this run"));
  for (const std::string& call : state.log->calls) CHECK(call != "write commit.slc");
  // Its fdatasync would succeed now, without the data.
  CHECK(state.store->commit(record).error().message() == failed.error().message());
  CHECK(state.step_on_disk() == 2);
}

TEST_CASE("a record that cannot be taken back ends committing") {
  FailingState state([](int, const std::string& call) { return call == "sync commit.slc"; });
  const CommitRecord record = write_step(*state.store, 3);
  const Status failed = state.store->commit(record);
  REQUIRE(!failed.ok());
  CHECK_THAT(failed.error().message(), Catch::Contains("may hold either commit"));
  CHECK(state.store->commit(record).error().message() == failed.error().message());
  const std::int64_t step = state.step_on_disk();
  const bool is_old_or_new = step == 2 || step == 3;
  CHECK(is_old_or_new);
}

TEST_CASE("failed commits in a row never harm the last one") {
  FailingState state([](int, const std::string& call) { return call == "write commit.slc"; });
  const CommitRecord record = write_step(*state.store, 3);
  for (int attempt = 0; attempt < 3; ++attempt) CHECK(!state.store->commit(record).ok());
  CHECK(state.step_on_disk() == 2);
  must(state.store->commit(write_step(*state.store, 3)));
  CHECK(state.step_on_disk() == 3);
}

}  // namespace
}  // namespace sluice::state
