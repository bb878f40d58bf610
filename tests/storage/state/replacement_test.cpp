#include "storage/state/replacement.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;
namespace fs = std::filesystem;

TEST_CASE(
    "a replacement of which some could not be moved is put in place when that is tried again") {
  const Geometry geometry{
      .parameter_count = 60, .subgroup_elements = 10, .variable_count = 2, .device_count = 2};
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  make_state(options, geometry, 1).reset();
  must(prepare_replacement(options, geometry.device_count));
  make_state(quick_options(replacement_of(options.directory)), geometry, 2).reset();

  // Nothing can be renamed to a folder.
  const std::string file = options.directory + "/dev1/state.slc";
  fs::remove(file);
  fs::create_directory(file);
  REQUIRE(!put_in_place(options).ok());
  fs::remove(file);
  must(put_in_place(options));

  CHECK_FALSE(fs::exists(replacement_of(options.directory)));
  const auto store = must(StateStore::open(options));
  CHECK(store->committed().position.step == 2);
  CHECK(digest_of(*store) == expected_digest(geometry, 2));
}

}  // namespace
}  // namespace sluice::state
