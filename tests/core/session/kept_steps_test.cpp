// Steps that a session keeps: a program goes on from any of them, to the bit.

#include <filesystem>

#include "core/session/session.h"
#include "tests/core/session/open_session.h"
#include "tests/test_folder.h"

using namespace sluice;
using session::KeptStep;
using session::Session;
using session::StepId;

namespace {

StepId kept_at(Session& session, const std::string& keeper) {
  const auto id = session.keep(keeper);
  REQUIRE(problem(id) == "");
  return *id;
}

std::unique_ptr<Session> reopened(const std::string& folder, const StepId& from,
                                  std::vector<std::string> settings = {}) {
  Session::Request request = request_in(folder, std::move(settings));
  request.from = from;
  return opened(request);
}

std::string digest_after(const std::string& folder, std::int64_t steps,
                         const std::vector<std::string>& settings) {
  auto session = opened(request_in(folder, settings));
  take_steps(*session, steps);
  REQUIRE(problem(session->close()) == "");
  return digest_in(folder);
}

}  // namespace

TEST_CASE("a session goes on from any step that is kept, to the bit, whatever the settings") {
  const std::vector<std::vector<std::string>> all_settings = {
      {},
      {"commit_every=3", "state_cache=1MiB"},
      {"method=host", "devices=1"},
      {"density=0.1", "error_feedback=true"}};
  for (const std::vector<std::string>& settings : all_settings) {
    const TestFolder whole;
    const std::string wanted = digest_after(whole.path(), 9, settings);
    const TestFolder folder;
    StepId second;
    StepId fifth;
    {
      auto session = opened(request_in(folder.path(), settings));
      take_steps(*session, 2);
      second = kept_at(*session, "two");
      take_steps(*session, 5);
      fifth = kept_at(*session, "five");
      take_steps(*session, 8);
    }
    for (const StepId& from : {fifth, second, fifth}) {
      auto session = reopened(folder.path(), from, settings);
      REQUIRE(session->step() == from.step);
      take_steps(*session, 9);
      REQUIRE(problem(session->close()) == "");
      CHECK(digest_in(folder.path()) == wanted);
    }
  }
}

TEST_CASE("a session lists the steps that it keeps, and releases them") {
  const TestFolder folder;
  auto session = opened(request_in(folder.path()));
  const StepId none = kept_at(*session, "before the first step");
  take_steps(*session, 2);
  const StepId second = kept_at(*session, "");
  CHECK(kept_at(*session, "checkpoint-2").version == second.version);
  const auto last = session->commit();
  REQUIRE(last.ok());
  CHECK(last->version == second.version);
  auto kept = session->kept();
  REQUIRE(kept.ok());
  REQUIRE(kept->size() == 2);
  CHECK((*kept)[0].id.step == 0);
  CHECK((*kept)[1].keeper == "checkpoint-2");
  REQUIRE(problem(session->release(none)) == "");
  CHECK_THAT(problem(session->release(none)), Catch::Contains("is not kept"));
  take_steps(*session, 3);
  kept = session->kept();
  REQUIRE(kept.ok());
  CHECK(kept->size() == 1);
}

TEST_CASE("a step is kept between two steps, and gone on from only where it is") {
  const TestFolder folder;
  {
    auto session = opened(request_in(folder.path()));
    REQUIRE(problem(session->send(0, gradient_of(0, 0))) == "");
    CHECK_THAT(problem(session->keep("me")),
               Catch::Contains("keeping a step was asked for among the gradients of step 1"));
  }
  {
    auto session = opened(request_in(folder.path()));
    take_steps(*session, 1);
  }
  Session::Request request = request_in(folder.path());
  request.from = {4, "0123456789abcdef"};
  CHECK_THAT(problem(Session::open(request)),
             Catch::Contains("step 4 of version 0123456789abcdef is not kept: kept are none, and "
                             "the last commit is of step 1"));
  request.folder = folder.path() + "/none";
  CHECK_THAT(problem(Session::open(request)), Catch::Contains("there is no state"));
  auto session = opened(request_in(folder.path()));  // nothing has changed
  CHECK(session->step() == 1);
}

TEST_CASE("a session that begins anew removes the state, and never one that is in use") {
  const TestFolder folder;
  const std::string first = digest_after(folder.path(), 2, {});
  Session::Request request = request_in(folder.path());
  request.begins_anew = true;
  {
    auto session = opened(request_in(folder.path()));
    CHECK(kept_at(*session, "me").step == 2);
    CHECK_THAT(problem(Session::open(request)), Catch::Contains("state"));
    take_steps(*session, 3);
  }
  auto session = opened(request);
  CHECK(session->step() == 0);
  const auto kept = session->kept();
  REQUIRE(kept.ok());
  CHECK(kept->empty());
  take_steps(*session, 2);
  REQUIRE(problem(session->close()) == "");
  CHECK(digest_in(folder.path()) == first);
}
