// In which order what is kept beside a state is made durable.

#include <catch2/catch.hpp>
#include <filesystem>

#include "storage/state/replacement.h"
#include "storage/state/snapshot.h"
#include "tests/noted_calls.h"
#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;

TEST_CASE("a note is durable before it has its name, and its name before it counts") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("notes");
  std::filesystem::create_directory(folder);
  const NotedCalls noted;
  must(keep_note({.directory = folder, .caching = io::Caching::buffered}, folder + "/note", "2\n"));
  CHECK(noted.calls() ==
        std::vector<std::string>{"sync note.new", "rename note.new", "sync notes"});
}

TEST_CASE("a snapshot is durable before it has its name, its name too, and its size is right") {
  const Geometry geometry{
      .parameter_count = 60, .subgroup_elements = 10, .variable_count = 2, .device_count = 1};
  const ScratchFolder scratch;
  const std::string folder = scratch.path("snapshots");
  std::filesystem::create_directory(folder);
  const auto store = make_state(quick_options(scratch.path("state")), geometry, 2);
  const NotedCalls noted;
  const SavedSnapshot saved = must(
      save_snapshot(*store, {.directory = folder + "/step-2", .caching = io::Caching::buffered}));
  CHECK(saved.step == 2);
  CHECK(saved.size_bytes == geometry.subgroup_count() * geometry.slot_bytes());
  REQUIRE(noted.calls().size() > 5);
  CHECK(std::vector(noted.calls().end() - 5, noted.calls().end()) ==
        std::vector<std::string>{"sync state.slc", "sync commit.slc", "sync step-2.new",
                                 "rename step-2.new", "sync snapshots"});
}

}  // namespace
}  // namespace sluice::state
