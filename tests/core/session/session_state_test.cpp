// A session's state read, carried into another folder, kept, and its knobs changed between steps.

#include "core/session/session_state.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <random>

#include "core/session/session_plan.h"
#include "core/session/tensor_table.h"
#include "tests/core/session/open_session.h"
#include "tests/test_folder.h"

using namespace sluice;
using session::Session;
using session::SessionState;
using session::Tensor;

namespace {

// One has several subgroups, several share one, and one in the middle is frozen.
const std::vector<Tensor> kHeld = {
    {"a", {3}}, {"b", {2048}}, {"still", {7}, 0, true}, {"c", {9, 1000}}, {"d", {1}}};
constexpr std::size_t kStill = 2;

std::vector<float> held_values(std::size_t tensor, std::int64_t step) {
  std::vector<float> values(static_cast<std::size_t>(session::element_count(kHeld[tensor])));
  std::mt19937 random(static_cast<unsigned>(step * 100 + static_cast<std::int64_t>(tensor)));
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random);
  return values;
}

void copy_part(const std::vector<float>& from, std::int64_t first, std::span<float> out) {
  std::copy_n(from.begin() + first, out.size(), out.begin());
}

Session::Request request_of_held(const std::string& folder,
                                 std::vector<std::string> settings = {}) {
  Session::Request request{.folder = folder, .tensors = kHeld};
  request.initial = [](std::size_t tensor, std::int64_t first, std::span<float> out) {
    copy_part(held_values(tensor, -1), first, out);
  };
  request.settings = {"platform=sample_models/platforms/smartssd-a5000.toml",
                      "subgroup_elements=4096", "devices=2", "durability=never"};
  request.settings.insert(request.settings.end(), settings.begin(), settings.end());
  return request;
}

// Steps [begin, end) of the gradients' numbers.
void take_steps_of(Session& session, std::int64_t begin, std::int64_t end) {
  for (std::int64_t step = begin; step < end; ++step) {
    for (std::size_t tensor = 0; tensor < kHeld.size(); ++tensor) {
      if (tensor == kStill) continue;
      REQUIRE(problem(session.send(tensor, held_values(tensor, step))) == "");
    }
    REQUIRE(problem(session.take_step({.lr = 0.01})) == "");
  }
}

using Arrays = std::vector<std::vector<std::vector<float>>>;  // by array and tensor

Arrays read_all(Session& session) {
  Arrays arrays(SessionState(session).arrays()->size());
  for (std::size_t array = 0; array < arrays.size(); ++array) {
    for (std::size_t tensor = 0; tensor < kHeld.size(); ++tensor) {
      std::vector<float>& values = arrays[array].emplace_back(
          static_cast<std::size_t>(session::element_count(kHeld[tensor])));
      if (tensor == kStill) continue;
      REQUIRE(problem(SessionState(session).read(tensor, array, 0, values)) == "");
    }
  }
  return arrays;
}

std::string digest_of(Session& session) {
  const auto digest = SessionState(session).digest();
  REQUIRE(problem(digest) == "");
  return *digest;
}

std::string value_of(Session& session, const std::string& key) {
  const auto knobs = session.knobs();
  REQUIRE(problem(knobs) == "");
  const auto found = std::ranges::find(*knobs, key, &session::Knob::key);
  return found == knobs->end() ? "" : found->value;
}

}  // namespace

TEST_CASE("a state that is read and given to a new session goes on to the bit") {
  for (const std::vector<std::string>& way : std::vector<std::vector<std::string>>{
           {}, {"method=host", "optimizer=sgd"}, {"optimizer=adagrad", "commit_every=5"}}) {
    const TestFolder whole, other;
    auto session = opened(request_of_held(whole.path(), way));
    take_steps_of(*session, 0, 3);
    const Arrays arrays = read_all(*session);
    CHECK(SessionState(*session).updates_done().value() == 3);
    take_steps_of(*session, 3, 5);

    Session::Request request = request_of_held(other.path(), way);
    request.initial = [&](std::size_t tensor, std::int64_t first, std::span<float> out) {
      copy_part(arrays[0][tensor], first, out);
    };
    request.initial_array = [&](std::size_t tensor, std::size_t array, std::int64_t first,
                                std::span<float> out) {
      copy_part(arrays[array][tensor], first, out);
    };
    request.initial_updates = 3;
    request.initial_step = 3;
    auto carried = opened(request);
    take_steps_of(*carried, 3, 5);
    CHECK(SessionState(*carried).updates_done().value() == 5);
    CHECK(carried->step() == 5);
    CHECK(digest_of(*carried) == digest_of(*session));
  }
}

TEST_CASE("part of an array is read as the whole is, and its values are those of the parameters") {
  const TestFolder folder;
  auto session = opened(request_of_held(folder.path(), {"precision=fp32"}));
  take_steps_of(*session, 0, 2);
  REQUIRE(problem(session->wait(3)) == "");
  const auto parameters = session->parameters_fp32(3);
  std::vector<float> part(5000);
  REQUIRE(problem(SessionState(*session).read(3, 0, 3500, part)) == "");
  CHECK(std::memcmp(part.data(), parameters.data() + 3500, part.size() * sizeof(float)) == 0);
}

TEST_CASE("the digest is that of the files, and a commit comes before it") {
  const TestFolder folder;
  auto session = opened(request_of_held(folder.path(), {"commit_every=100"}));
  take_steps_of(*session, 0, 2);
  const std::string digest = digest_of(*session);
  CHECK(digest.size() == 32);
  REQUIRE(problem(session->close()) == "");
  CHECK(digest_in(folder.path()) == digest);
}

TEST_CASE("a snapshot is gone on from to the bit, and the session as before") {
  const TestFolder whole, kept;
  auto session = opened(request_of_held(whole.path()));
  take_steps_of(*session, 0, 2);
  const auto snapshot = SessionState(*session).save_snapshot(kept.path() + "/state");
  REQUIRE(problem(snapshot) == "");
  CHECK(*snapshot > 0);
  take_steps_of(*session, 2, 4);
  CHECK_THAT(problem(SessionState(*session).save_snapshot(kept.path() + "/state")),
             Catch::Contains(kept.path() + "/state"));
  auto resumed = opened(request_of_held(kept.path()));
  CHECK(resumed->step() == 2);
  take_steps_of(*resumed, 2, 4);
  CHECK(digest_of(*resumed) == digest_of(*session));
}

TEST_CASE("knobs change between steps and no bit with them; what is none is refused by name") {
  const TestFolder plain, turned;
  auto session = opened(request_of_held(plain.path()));
  take_steps_of(*session, 0, 4);
  auto other = opened(request_of_held(turned.path(), {"buffers=2"}));
  take_steps_of(*other, 0, 2);
  REQUIRE(problem(other->set({"buffers=4", "prefetch=false"})) == "");
  CHECK(value_of(*other, "buffers") == "4");
  CHECK(value_of(*other, "prefetch") == "false");
  CHECK_THAT(problem(other->set({"bufers=4"})), Catch::Contains("bufers"));
  CHECK_THAT(problem(other->set({"prefetch=true", "buffers=0"})), Catch::Contains("buffers"));
  CHECK(value_of(*other, "prefetch") == "false");
  take_steps_of(*other, 2, 4);
  CHECK(digest_of(*other) == digest_of(*session));
}

TEST_CASE("calls among gradients and for what is not there are refused and change nothing") {
  const TestFolder folder;
  auto session = opened(request_of_held(folder.path()));
  std::vector<float> out(8);
  CHECK_THAT(problem(SessionState(*session).read(9, 0, 0, out)),
             Catch::Contains("the session has 5"));
  CHECK_THAT(problem(SessionState(*session).read(1, 3, 0, out)), Catch::Contains("array 3"));
  CHECK_THAT(problem(SessionState(*session).read(1, 0, 2041, out)),
             Catch::Contains("b: it has 2048"));
  CHECK_THAT(problem(SessionState(*session).read(1, 0, -1, out)),
             Catch::Contains("b: it has 2048"));
  CHECK_THAT(problem(SessionState(*session).read(kStill, 0, 0, std::span(out).first(7))),
             Catch::Contains("still is frozen"));
  REQUIRE(session->send(0, held_values(0, 0)).ok());
  CHECK_THAT(problem(SessionState(*session).digest()), Catch::Contains("the gradients of step 1"));
  CHECK_THAT(problem(session->set({"buffers=4"})), Catch::Contains("the gradients of step 1"));
  CHECK(value_of(*session, "prefetch") == "true");
  for (const std::size_t tensor : {1, 3, 4}) {
    REQUIRE(session->send(tensor, held_values(tensor, 0)).ok());
  }
  REQUIRE(problem(session->take_step()) == "");
  CHECK(digest_of(*session).size() == 32);
}

TEST_CASE("a plan has the bytes of each place and the time of an update, and opens nothing") {
  const TestFolder folder;
  const auto plan = session::plan_session(request_of_held(folder.path()));
  REQUIRE(problem(plan) == "");
  CHECK(std::filesystem::is_empty(folder.path()));
  std::int64_t host = 0, drives = 0;
  for (const session::SessionPlan::Row& row : plan->rows) {
    (row.place == "host memory" ? host : drives) += row.size_bytes;
  }
  CHECK(host == plan->host_memory_bytes);
  CHECK(opened(request_of_held(folder.path()))->planned_memory_bytes() == host);
  // Two versions of three arrays, and the gradients.
  CHECK(drives >= 11052 * 4 * 6);
  CHECK(plan->update_seconds > 0);
  const TestFolder small;
  CHECK_THAT(problem(session::plan_session(request_of_held(small.path(), {"host_memory=1MiB"}))),
             Catch::Contains("host_memory"));
  const auto slower = session::plan_session(request_of_held(small.path(), {"devices=1"}));
  CHECK(slower->update_seconds > plan->update_seconds);
}
