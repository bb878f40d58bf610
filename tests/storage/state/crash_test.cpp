// The machine stops at every call that creation and commit make, and inside every write: what is
// opened afterwards is the old state or the new one, whole.

#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "storage/state/detail/open_store.h"
#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;
namespace fs = std::filesystem;

constexpr std::size_t kSectorBytes = 512;  // what a drive writes whole

// A record of two pages, so that it can be torn in many places.
const Geometry kTornGeometry{
    .parameter_count = 300, .subgroup_elements = 1, .variable_count = 1, .device_count = 2};
constexpr int kCallsOfCommit = 4;  // two device syncs, the record, its sync

// Writes the sectors that `reaches_drive` picks, in a write that is cut off.
ScriptedDisk::PartialWork torn_write(std::function<bool(std::size_t sector)> reaches_drive) {
  return [reaches_drive, done = false](const detail::DiskCall& call) mutable {
    if (done || call.kind != detail::DiskCall::Kind::write) return;
    done = true;
    for (std::size_t at = 0; at < call.data.size(); at += kSectorBytes)
      if (reaches_drive(at / kSectorBytes))
        must(call.file->write_exactly(call.offset_bytes + static_cast<std::int64_t>(at),
                                      call.data.subspan(at, kSectorBytes)));
  };
}

class CrashTest {
 public:
  CrashTest() { make_state(options_, kTornGeometry, 1).reset(); }

 protected:
  // One step on a fresh copy of the state, stopped at a call; returns the step that is then found.
  std::int64_t step_after_crash(int stop_at, ScriptedDisk::PartialWork partial_work) {
    const StateStore::Options copy = quick_options(scratch_.path("copy"));
    fs::remove_all(copy.directory);
    fs::copy(options_.directory, copy.directory, fs::copy_options::recursive);
    auto disk = std::make_unique<ScriptedDisk>(std::make_shared<CallLog>(), stops_at(stop_at),
                                               std::move(partial_work));
    auto store = must(detail::open_store(copy, std::move(disk)));
    const bool committed = store->commit(write_step(*store, 2)).ok();
    REQUIRE(committed == (stop_at >= kCallsOfCommit));
    store.reset();

    store = must(StateStore::open(copy));
    const std::int64_t step = store->committed().position.step;
    REQUIRE(digest_of(*store) == expected_digest(kTornGeometry, step));
    must(store->commit(write_step(*store, step + 1)));  // and it goes on from there
    REQUIRE(digest_of(*store) == expected_digest(kTornGeometry, step + 1));
    return step;
  }

  ScratchFolder scratch_;
  StateStore::Options options_ = quick_options(scratch_.path("state"));
};

TEST_CASE_METHOD(CrashTest, "a commit that is stopped at any call is there or not") {
  CHECK(step_after_crash(0, nullptr) == 1);
  CHECK(step_after_crash(1, nullptr) == 1);
  CHECK(step_after_crash(2, nullptr) == 1);
  CHECK(step_after_crash(3, nullptr) == 2);  // written, and the power lasted
  CHECK(step_after_crash(4, nullptr) == 2);
}

TEST_CASE_METHOD(CrashTest, "a record torn at any sector does not count until it is whole") {
  constexpr std::size_t kRecordSectors = 10;  // 88 + 300 x 16 + 8 bytes
  for (std::size_t sectors = 0; sectors <= 16; ++sectors) {
    const std::int64_t step =
        step_after_crash(2, torn_write([sectors](std::size_t sector) { return sector < sectors; }));
    REQUIRE(step == (sectors < kRecordSectors ? 1 : 2));
  }
}

TEST_CASE_METHOD(CrashTest, "a record of which any sectors are missing does not count") {
  std::mt19937 random(3);
  for (std::uint32_t round = 0; round < 24; ++round) {
    // At least one of the sectors of the record stays behind.
    const auto lost = static_cast<std::uint32_t>(round < 9 ? 1u << round : 1 + random() % 1023);
    const std::int64_t step = step_after_crash(2, torn_write([lost](std::size_t sector) {
                                                 return sector >= 10 || (lost >> sector & 1) == 0;
                                               }));
    REQUIRE(step == 1);
  }
}

// A creation on two devices that is stopped at call `stop_at`; whether it ended before that.
bool create_until(const StateStore::Options& options, int stop_at,
                  ScriptedDisk::PartialWork partial_work) {
  const Geometry geometry{
      .parameter_count = 7, .subgroup_elements = 2, .variable_count = 2, .device_count = 2};
  auto disk = std::make_unique<ScriptedDisk>(std::make_shared<CallLog>(), stops_at(stop_at),
                                             std::move(partial_work));
  return detail::create_store(options, test_identity(2), geometry, make_device_map(4, {1, 1}),
                              std::move(disk))
      .ok();
}

TEST_CASE("devices that leave are gone or not, wherever it is stopped, and nothing is lost") {
  const ScratchFolder scratch;
  const StateStore::Options drained = quick_options(scratch.path("drained"));
  {
    auto store = make_state(drained, kTornGeometry, 1);
    const auto to_first = [](SubgroupId) { return DeviceId{0}; };
    must(store->commit(write_step(*store, 2, to_first)));
    must(store->fit());
  }
  bool ended = false;
  int stop_at = 0;
  for (; !ended; ++stop_at) {
    const StateStore::Options copy = quick_options(scratch.path("copy"));
    fs::remove_all(copy.directory);
    fs::copy(drained.directory, copy.directory, fs::copy_options::recursive);
    ScriptedDisk disk(std::make_shared<CallLog>(), stops_at(stop_at), nullptr);
    ended = detail::remove_devices(copy, 1, disk).ok();
    {
      auto store = must(StateStore::open(copy));
      CHECK(digest_of(*store) == expected_digest(kTornGeometry, 2));
      if (ended) CHECK(store->layout().geometry().device_count == 1);
    }
    must(StateStore::remove_devices(copy, 1));  // and again
    auto store = must(StateStore::open(copy));
    CHECK(store->layout().geometry().device_count == 1);
    must(store->commit(write_step(*store, 3)));
    CHECK(digest_of(*store) == expected_digest(kTornGeometry, 3));
    CHECK_FALSE(fs::exists(copy.directory + "/commit.slc.new"));
    if (ended) CHECK_FALSE(fs::exists(copy.directory + "/dev1/state.slc"));
  }
  CHECK(stop_at > 5);  // it was stopped somewhere
}

TEST_CASE("a device's file goes once the log without it is durably in its place") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  {
    auto store = make_state(options, kTornGeometry, 1);
    must(store->commit(write_step(*store, 2, [](SubgroupId) { return DeviceId{0}; })));
  }
  const auto log = std::make_shared<CallLog>();
  ScriptedDisk disk(log, nullptr);
  must(detail::remove_devices(options, 1, disk));
  const std::vector<std::string>& calls = log->calls;
  REQUIRE(calls.size() > 4);
  CHECK(std::vector(calls.end() - 4, calls.end()) ==
        std::vector<std::string>{"sync_directory state", "rename commit.slc.new",
                                 "sync_directory state", "remove dev1/state.slc"});
}

TEST_CASE("a device with state on it does not leave") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  make_state(options, kTornGeometry, 1).reset();
  const Status refused = StateStore::remove_devices(options, 1);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::config);
  CHECK_THAT(refused.error().message(),
             Catch::Contains("150 of 300 subgroups") && Catch::Contains("drain it first"));
  CHECK(must(StateStore::open(options))->layout().geometry().device_count == 2);
}

TEST_CASE("a creation that is stopped at any call can be repeated, with fewer devices too") {
  const ScratchFolder scratch;
  const std::size_t sectors_written = GENERATE(0u, 1u, 5u, 8u);
  bool ended = false;
  int stop_at = 0;
  for (; !ended; ++stop_at) {
    const StateStore::Options options =
        quick_options(scratch.path(fmt::format("state-{}-{}", sectors_written, stop_at)));
    ended = create_until(options, stop_at, torn_write([sectors_written](std::size_t sector) {
                           return sector < sectors_written;
                         }));
    // After the last rename all of it is there: a state that was never committed.
    if (StateStore::exists(options.directory))
      CHECK(StateStore::open(options).error().code() == ErrorCode::not_found);
    const Geometry smaller{.parameter_count = 3, .subgroup_elements = 2, .variable_count = 1};
    auto store = make_state(options, smaller, 1);
    CHECK(digest_of(*store) == expected_digest(smaller, 1));
    for (const auto& entry : fs::recursive_directory_iterator(options.directory))
      CHECK(entry.path().extension() != ".new");
    CHECK_FALSE(fs::exists(options.directory + "/dev1/state.slc"));
  }
  CHECK(stop_at > 15);  // it was stopped somewhere
}

}  // namespace
}  // namespace sluice::state
