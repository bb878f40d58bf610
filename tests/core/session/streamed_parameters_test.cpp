// parameter_tier=storage in a session: the drives have the parameters, and a copy of them is what
// those in memory are.

#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/session/session.h"
#include "tests/core/session/open_session.h"
#include "tests/test_folder.h"

using namespace sluice;
using session::Session;

namespace {

template <typename T>
std::vector<T> copied(Session& session, std::size_t tensor) {
  std::vector<T> values(static_cast<std::size_t>(session::element_count(kTensors[tensor])));
  REQUIRE(problem(copy_parameters(session, tensor, std::span(values))) == "");
  return values;
}

// After each of three steps, each tensor's, as often as it is asked for, in any order.
template <typename T>
std::vector<std::vector<T>> copies_of(Session& session) {
  std::vector<std::vector<T>> found;
  for (std::int64_t step = 0; step <= 3; ++step) {
    take_steps(session, step);
    for (std::size_t tensor = 0; tensor < kTensors.size(); ++tensor)
      found.push_back(copied<T>(session, tensor));
    for (const std::size_t tensor : shuffled(step)) found.push_back(copied<T>(session, tensor));
  }
  return found;
}

template <typename T>
void compare_tiers(const std::vector<std::string>& way) {
  std::vector<std::vector<T>> first;
  std::string digest;
  for (const char* tier : {"parameter_tier=memory", "parameter_tier=storage"}) {
    const TestFolder folder;
    std::vector<std::string> settings = way;
    settings.emplace_back(tier);
    auto session = opened(request_in(folder.path(), settings));
    const auto found = copies_of<T>(*session);
    REQUIRE(problem(session->close()) == "");
    session.reset();
    session = opened(request_in(folder.path(), settings));
    CHECK(copied<T>(*session, 2) == found[found.size() - kTensors.size() - 3]);
    REQUIRE(problem(session->close()) == "");
    if (first.empty()) first = found;
    CHECK(found == first);
    if (digest.empty()) digest = digest_in(folder.path());
    CHECK(digest_in(folder.path()) == digest);
  }
}

}  // namespace

TEST_CASE("copied parameters are the same wherever they lie") {
  compare_tiers<float>({"precision=fp32", "method=host", "parameter_buffer=24KiB"});
  compare_tiers<std::uint16_t>({"method=host", "pipeline=serial"});
  compare_tiers<std::uint16_t>({"method=csd"});
}

TEST_CASE("parameters on the drives are copied while gradients come") {
  const TestFolder folder;
  auto session = opened(request_in(folder.path(), {"method=host", "parameter_tier=storage"}));
  take_steps(*session, 1);
  const std::vector<std::uint16_t> wanted = copied<std::uint16_t>(*session, 4);
  std::vector<std::thread> threads;
  for (std::size_t tensor = 0; tensor < kTensors.size(); ++tensor) {
    threads.emplace_back([&, tensor] {
      if (!session->send(tensor, gradient_of(tensor, 1)).ok()) std::abort();
    });
    CHECK(copied<std::uint16_t>(*session, 4) == wanted);
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(copied<std::uint16_t>(*session, 4) == wanted);
  REQUIRE(problem(session->take_step({.lr = 0.01})) == "");
  CHECK(copied<std::uint16_t>(*session, 4) != wanted);
}

TEST_CASE("parameters on the drives take a window of memory, and are had by a copy alone") {
  const TestFolder on_drives, in_memory;
  const auto planned = [&](const std::string& folder, const std::string& tier) {
    Session::Request request = request_in(folder, {"method=host", tier});
    request.tensors.assign(40, {"", {100'000}});
    for (std::size_t t = 0; t < request.tensors.size(); ++t)
      request.tensors[t].name = std::to_string(t);
    return opened(request)->planned_memory_bytes();
  };
  const std::int64_t difference = planned(in_memory.path(), "parameter_tier=memory") -
                                  planned(on_drives.path(), "parameter_tier=storage");
  CHECK(difference > 36 * 100'000 * 2);
  const TestFolder folder;
  auto session = opened(request_in(folder.path(), {"parameter_tier=storage", "method=host"}));
  const auto narrow = Session::open(
      request_in(in_memory.path() + "/2", {"parameter_tier=storage", "parameter_buffer=1"}));
  CHECK_THAT(narrow.error().message(), Catch::Contains("widest layer take"));
  CHECK_THAT(session->wait(0).error().message(), Catch::Contains("copy_parameters"));
  std::vector<float> wide(3);
  CHECK_THAT(copy_parameters(*session, 0, std::span(wide)).error().message(),
             Catch::Contains("take 6 bytes"));
  std::vector<std::uint16_t> short_one(2);
  CHECK_FALSE(copy_parameters(*session, 0, std::span(short_one)).ok());
  CHECK_FALSE(copy_parameters(*session, 9, std::span(short_one)).ok());
  CHECK(copied<std::uint16_t>(*session, 0).size() == 3);
}
