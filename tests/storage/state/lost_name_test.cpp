// Files of an open state that are removed, moved or covered: the run hears of it at its next commit
// and says nothing of a commit that nobody would find.

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;
namespace fs = std::filesystem;

const Geometry kTwoDevices{
    .parameter_count = 60, .subgroup_elements = 10, .variable_count = 2, .device_count = 2};

struct OpenState {
  OpenState() {
    make_state(options, kTwoDevices, 1).reset();
    store = must(StateStore::open(options));
  }

  // The next commit is refused with these words, and so is what the owner asks before it says
  // "committed". The layout is as before a failed commit.
  void require_refused(const std::string& path, const std::string& why) {
    const CommitRecord before = store->committed();
    const CommitRecord record = write_step(*store, 2);
    for (const Status& status : {store->commit(record), store->check_files()}) {
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().code() == ErrorCode::io);
      CHECK_THAT(status.error().message(),
                 Catch::Contains("the state's file " + path + " is no longer there: " + why) &&
                     Catch::Contains("the last commit, of step 1,"));
    }
    CHECK(store->committed() == before);
  }

  ScratchFolder scratch;
  StateStore::Options options = quick_options(scratch.path("state"));
  std::unique_ptr<StateStore> store;
};

TEST_CASE("a commit after a device's file was removed is refused, with its name") {
  OpenState state;
  REQUIRE(state.store->check_files().ok());
  fs::remove_all(state.scratch.path("state/dev1"));
  state.require_refused(state.scratch.path("state/dev1/state.slc"), "it was removed");
}

TEST_CASE("a commit after the log was removed is refused, with its name") {
  OpenState state;
  fs::remove(state.scratch.path("state/commit.slc"));
  state.require_refused(state.scratch.path("state/commit.slc"), "it was removed");
}

TEST_CASE("a state that was moved as a whole is not where its run says, until it is put back") {
  OpenState state;
  fs::rename(state.scratch.path("state"), state.scratch.path("moved"));
  state.require_refused(state.scratch.path("state/dev0/state.slc"), "it was moved");
  fs::rename(state.scratch.path("moved"), state.scratch.path("state"));
  CHECK(state.store->check_files().ok());
  state.store->layout().abandon();
  must(state.store->commit(write_step(*state.store, 3)));
  state.store.reset();
  CHECK(digest_of(*must(StateStore::open(state.options))) == expected_digest(kTwoDevices, 3));
}

TEST_CASE("a file that was replaced by its own copy is not the one that is written to") {
  OpenState state;
  const std::string path = state.scratch.path("state/dev1/state.slc");
  fs::copy_file(path, path + ".copy");
  fs::rename(path, path + ".kept");
  fs::rename(path + ".copy", path);
  state.require_refused(path, "another file has its name");
}

TEST_CASE("a device's folder may be a link that is put elsewhere with the file") {
  OpenState state;
  fs::rename(state.scratch.path("state/dev1"), state.scratch.path("drive"));
  fs::create_directory_symlink(state.scratch.path("drive"), state.scratch.path("state/dev1"));
  CHECK(state.store->check_files().ok());
  must(state.store->commit(write_step(*state.store, 2)));
}

TEST_CASE("a state's files and its lock are opened for writing under one name alone") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  make_state(options, kTwoDevices, 1).reset();
  const std::string name = GENERATE("lock", "commit.slc", "dev1/state.slc");
  const std::string path = scratch.path("state/" + name);
  const std::string other = scratch.path("other");
  const auto refused = [&](const std::string& words) {
    const auto opened = StateStore::open(options);
    REQUIRE_FALSE(opened.ok());
    CHECK_THAT(opened.error().message(), Catch::Contains(path) && Catch::Contains(words));
  };
  INFO(name);
  SECTION("a link") {
    fs::rename(path, other);
    fs::create_symlink(other, path);
    refused("is a symbolic link");
  }
  SECTION("a second name") {
    fs::create_hard_link(path, other);
    refused("2 names (hard links)");
  }
  SECTION("a pipe") {
    fs::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    refused("is a pipe");
  }
}

}  // namespace
}  // namespace sluice::state
