// Commits that are kept: what they hold stays as it was, whatever is committed later, and a state
// goes back to any of them.

#include "storage/state/kept_commits.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "storage/state/detail/open_store.h"
#include "storage/state/replacement.h"
#include "storage/state/return_to.h"
#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;
namespace fs = std::filesystem;

const Geometry kKeptGeometry{
    .parameter_count = 60, .subgroup_elements = 10, .variable_count = 2, .device_count = 3};

std::int64_t slots_in_files(const StateStore::Options& options) {
  std::int64_t bytes = 0;
  for (int d = 0; d < kKeptGeometry.device_count; ++d) {
    const std::string path = fmt::format("{}/dev{}/state.slc", options.directory, d);
    bytes += static_cast<std::int64_t>(fs::file_size(path)) - kPageBytes;
  }
  return bytes / kKeptGeometry.slot_bytes();
}

// What a state goes on from after it went back, whole.
void check_goes_back(const StateStore::Options& options, const CommitId& id) {
  must(return_to_kept(options, id));
  const auto store = must(StateStore::open(options));
  CHECK(store->committed().position.step == id.step);
  CHECK(digest_of(*store) == expected_digest(kKeptGeometry, id.step));
}

template <typename T>
std::string message_of(const Result<T>& result) {
  REQUIRE_FALSE(result.ok());
  return result.error().message();
}

TEST_CASE("a state goes back to a kept commit, and on from there") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  CommitId kept;
  {
    const auto store = make_state(options, kKeptGeometry, 3);
    kept = must(store->keep("checkpoint-3"));
    CHECK(kept.step == 3);
    for (std::int64_t step = 4; step <= 9; ++step) must(store->commit(write_step(*store, step)));
  }
  const std::vector<KeptCommit> found = must(kept_commits(options.directory));
  REQUIRE(found.size() == 1);
  CHECK(found[0].id == kept);
  CHECK(found[0].keeper == "checkpoint-3");
  check_goes_back(options, kept);
  {
    const auto store = must(StateStore::open(options));
    for (std::int64_t step = 24; step <= 29; ++step) must(store->commit(write_step(*store, step)));
    CHECK(digest_of(*store) == expected_digest(kKeptGeometry, 29));
  }
  check_goes_back(options, kept);
}

TEST_CASE("a kept commit takes one slot more for each subgroup, and gives it back") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const auto store = make_state(options, kKeptGeometry, 0);
  constexpr std::int64_t kSubgroups = 6;
  CHECK(slots_in_files(options) == 2 * kSubgroups);
  std::vector<CommitId> kept;
  std::int64_t step = 0;
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) must(store->commit(write_step(*store, ++step)));
  };
  for (std::int64_t count = 1; count <= 3; ++count) {
    kept.push_back(must(store->keep("")));
    CHECK(slots_in_files(options) == (2 + count) * kSubgroups);  // before anything needs it
    steps(3);
    CHECK(slots_in_files(options) == (2 + count) * kSubgroups);
  }
  const CommitId once = must(store->keep("again"));
  CHECK(must(store->keep("and again")) == once);  // one more
  must(store->release(kept[0]));
  must(store->release(kept[1]));
  steps(2);
  must(store->release(kept[2]));
  CHECK(slots_in_files(options) == 4 * kSubgroups);  // up to the highest that is held
  REQUIRE(store->kept().size() == 1);
  CHECK(store->kept()[0].keeper == "and again");
  must(store->release(store->kept()[0].id));
  steps(2);
  must(store->fit());
  CHECK(slots_in_files(options) == 2 * kSubgroups);
  CHECK_FALSE(fs::exists(options.directory + "/kept/step-000000-" + kept[0].version + ".txt"));
}

TEST_CASE("kept commits stay whole through random histories, reopened and gone back at any time") {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const ScratchFolder scratch;
    const StateStore::Options options = quick_options(scratch.path("state"));
    std::unique_ptr<StateStore> store = make_state(options, kKeptGeometry, 0);
    std::int64_t newest = 0;
    std::vector<CommitId> kept;
    const auto random_kept = [&] {
      return kept.begin() + static_cast<int>(random() % kept.size());
    };
    for (int event = 0; event < 60; ++event) {
      switch (random() % 8) {
        case 0: {
          const CommitId id = must(store->keep("somebody"));
          if (std::ranges::find(kept, id) == kept.end()) kept.push_back(id);
          break;
        }
        case 1:
          if (kept.empty()) break;
          {
            const auto which = random_kept();
            must(store->release(*which));
            kept.erase(which);
          }
          break;
        case 2:
          write_step(*store, newest + 1);
          store->layout().abandon();
          break;
        case 3:
          store.reset();
          store = must(StateStore::open(options));
          break;
        case 4:
          if (kept.empty()) break;
          store.reset();
          check_goes_back(options, *random_kept());
          store = must(StateStore::open(options));
          break;
        case 5:
          must(store->fit());
          break;
        default:  // to any devices
          must(store->commit(write_step(*store, ++newest, [&](SubgroupId) {
            return DeviceId{static_cast<std::int32_t>(random() % 3)};
          })));
      }
      REQUIRE(store->kept().size() == kept.size());
    }
    store.reset();
    for (const CommitId& id : kept) check_goes_back(options, id);
  }
}

TEST_CASE("a machine that stops while a commit is kept or released leaves it kept or not") {
  const ScratchFolder scratch;
  const StateStore::Options whole = quick_options(scratch.path("state"));
  CommitId first;
  {
    const auto store = make_state(whole, kKeptGeometry, 1);
    first = must(store->keep("first"));
    must(store->commit(write_step(*store, 2)));
  }
  const StateStore::Options copy = quick_options(scratch.path("copy"));
  bool was_kept = false;
  bool was_released = false;
  for (int stop_at = 0; !was_kept || !was_released; ++stop_at) {
    REQUIRE(stop_at < 40);
    for (const bool keeps : {true, false}) {
      fs::remove_all(copy.directory);
      fs::copy(whole.directory, copy.directory, fs::copy_options::recursive);
      auto store = must(detail::open_store(
          copy, std::make_unique<ScriptedDisk>(std::make_shared<CallLog>(), stops_at(stop_at))));
      const bool done = keeps ? store->keep("second").ok() : store->release(first).ok();
      (keeps ? was_kept : was_released) |= done;
      store.reset();

      store = must(StateStore::open(copy));
      REQUIRE(digest_of(*store) == expected_digest(kKeptGeometry, 2));
      if (keeps && done) REQUIRE(store->kept().size() == 2);
      for (std::int64_t step = 3; step <= 6; ++step) must(store->commit(write_step(*store, step)));
      const std::vector<KeptCommit> left = store->kept();
      store.reset();
      for (const KeptCommit& commit : left) check_goes_back(copy, commit.id);
    }
  }
}

TEST_CASE("a commit that cannot be kept is not, and the state goes on") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  make_state(options, kKeptGeometry, 2).reset();
  const auto fails = [](int, const std::string& call) { return call.starts_with("allocate dev1"); };
  const auto store = must(detail::open_store(
      options, std::make_unique<ScriptedDisk>(std::make_shared<CallLog>(), fails)));
  const std::int64_t before = slots_in_files(options);
  CHECK_THAT(message_of(store->keep("me")), Catch::Contains("step 2 cannot be kept"));
  CHECK(store->kept().empty());
  CHECK(slots_in_files(options) == before);
  must(store->commit(write_step(*store, 3)));
  must(store->commit(write_step(*store, 4)));
  CHECK(digest_of(*store) == expected_digest(kKeptGeometry, 4));
}

TEST_CASE("what is not kept, damaged or of another state is refused by name") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  CommitId kept;
  {
    const auto store = make_state(options, kKeptGeometry, 1);
    kept = must(store->keep("me"));
    must(store->commit(write_step(*store, 2)));
    CHECK(store->release({7, kept.version}).error().code() == ErrorCode::not_found);
  }
  const std::string refusal = message_of(return_to_kept(options, {1, "0123456789abcdef"}));
  CHECK_THAT(refusal, Catch::Contains("step 1 of version 0123456789abcdef is not kept: kept are "
                                      "steps 1, and the last commit is of step 2"));

  const std::string path = path_beside_kept(options.directory, kept, ".slc");
  const std::string other = path_beside_kept(options.directory, {9, kept.version}, ".slc");
  fs::copy(path, other);
  CHECK_THAT(message_of(StateStore::open(options)),
             Catch::Contains("step-000009") && Catch::Contains("not what its name says"));
  fs::remove(other);
  for (const std::int64_t offset : {0, 600, 2 * 4096 + 50}) {
    fs::copy(path, scratch.path("good"), fs::copy_options::overwrite_existing);
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(offset) << '\x5a';
    CHECK_THAT(message_of(StateStore::open(options)), Catch::Contains(path));
    fs::copy(scratch.path("good"), path, fs::copy_options::overwrite_existing);
  }
  fs::resize_file(path, 5000);
  CHECK_THAT(message_of(StateStore::open(options)), Catch::Contains("cut short"));
  fs::remove(path);  // as the message says
  CHECK(must(StateStore::open(options))->kept().empty());
}

TEST_CASE(
    "devices that a kept commit needs stay, and a state that goes takes its kept ones along") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  CommitId kept;
  {
    const auto store = make_state(options, kKeptGeometry, 1);
    kept = must(store->keep("me"));
    must(store->commit(write_step(*store, 2, [](SubgroupId) { return DeviceId{0}; })));
  }
  CHECK_THAT(message_of(StateStore::remove_devices(options, 1)),
             Catch::Contains("the commit of step 1 is kept (me)"));
  must(must(StateStore::open(options))->release(kept));
  must(StateStore::remove_devices(options, 1));
  must(must(StateStore::open(options))->keep("me"));
  must(remove_state(options));
  CHECK_FALSE(fs::exists(options.directory + "/kept"));
}

}  // namespace
}  // namespace sluice::state
