// A state that goes back by one commit, as ranks do that were ahead of others.

#include "storage/state/return_to.h"

#include <catch2/catch.hpp>

#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;

const Geometry kReturningGeometry{
    .parameter_count = 60, .subgroup_elements = 10, .variable_count = 2, .device_count = 3};

std::int64_t step_on_disk(const StateStore::Options& options) {
  const auto store = must(StateStore::open(options));
  CHECK(digest_of(*store) == expected_digest(kReturningGeometry, store->committed().position.step));
  return store->committed().position.step;
}

std::string refusal(const Status& status) {
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::not_found);
  return status.error().message();
}

TEST_CASE("a state goes back to the commit before the last one, and on from there") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  make_state(options, kReturningGeometry, 5).reset();
  must(return_to(options, 5));
  CHECK(step_on_disk(options) == 5);
  must(return_to(options, 4));
  CHECK(step_on_disk(options) == 4);
  {
    const auto store = must(StateStore::open(options));
    must(store->commit(write_step(*store, 5)));
    must(store->commit(write_step(*store, 6)));
  }
  CHECK(step_on_disk(options) == 6);
  must(return_to(options, 5));
  CHECK(step_on_disk(options) == 5);
}

TEST_CASE("a state does not go back further than a commit, and says what it has") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  make_state(options, kReturningGeometry, 5).reset();
  CHECK_THAT(refusal(return_to(options, 3)),
             Catch::Contains("cannot go back to step 3: the last commit is of step 5, and the one "
                             "before it of step 4"));
  must(return_to(options, 4));
  CHECK_THAT(refusal(return_to(options, 3)), Catch::Contains("is not there"));
  CHECK(step_on_disk(options) == 4);
}

TEST_CASE("a state that a run has open does not go back") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const auto store = make_state(options, kReturningGeometry, 2);
  CHECK_FALSE(return_to(options, 1).ok());
}

}  // namespace
}  // namespace sluice::state
